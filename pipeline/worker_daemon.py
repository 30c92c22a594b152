"""The process that Spark's Python workers are forked from, with all that our tasks import already in it.

Spark's own has nothing in it, so that each worker imports for itself; and it finds PySpark in a zip file, where no
module is ever compiled for good: 1.5 s of a core for every worker. On one machine only: elsewhere neither PySpark nor
our packages need be installed where this would look for them.
"""

import gc
import sys

#: PySpark as Spark's own scripts bring it; the same lies unpacked, and compiled, among the installed packages.
_ZIPPED = ("/lib/pyspark.zip", "-src.zip")

sys.path[:] = [entry for entry in sys.path if not entry.endswith(_ZIPPED)]

import pandas as pd  # noqa: E402,F401
import pyarrow.compute  # noqa: E402
import pyarrow.parquet  # noqa: E402,F401
import pyspark.worker  # noqa: E402,F401
from pyspark.daemon import manager  # noqa: E402

import pipeline.history.partitions  # noqa: E402
import pipeline.jobs.audit  # noqa: E402
import pipeline.source.batch_reader  # noqa: E402,F401

if __name__ == "__main__":
    # No worker looks through all of it for garbage, and so each shares it with the others.
    gc.freeze()
    manager()
