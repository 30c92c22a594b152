"""The process that Spark's Python workers are forked from, with all that our tasks import already in it.

Spark's own has nothing in it: each worker then imports for itself, a second of a core every time. On one machine only:
elsewhere our packages reach the workers with their first task, after this has started.
"""

import gc

import pandas as pd  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import quorate.pipeline.comparing.differences
import quorate.pipeline.history.partitions
import quorate.pipeline.jobs.audit
import quorate.pipeline.source.batch_reader  # noqa: F401

if __name__ == "__main__":
    # No worker looks through all of it for garbage, and so each shares it with the others.
    gc.freeze()
    manager()
