"""``register(spark)``: makes a session that somebody else started one in which ``quorate-log`` works."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.failures import translated
from quorate.pipeline.source.data_source import QuorateLogSource

#: What the source relies on in a session. Filters are pushed down; times are UTC, as the documents say.
SETTINGS: Final = {
    # Off by default, and then a source that offers it is refused.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
#: What a worker imports: ours, and one of each kind of what they import.
_NEEDED: Final = ("quorate", "crc32c", "numpy", "pandas", "pyarrow")


def register(spark: SparkSession) -> None:
    """Make the source known to a session, and set what it needs; once more does no harm.

    Sets ``SETTINGS``. Where nobody chose the Python of the workers, and all of Spark runs in one JVM of this machine,
    they get this one; a small job finds out whether it has what it needs.

    Raises:
        BadSetting: it has not, or runs no task at all.
    """
    context = spark.sparkContext
    if _is_unchosen(context):
        context.pythonExec = sys.executable
    _require_packages(context)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    add_source(spark)


def add_source(spark: SparkSession) -> None:
    """Make the source known to a session that has all it needs."""
    spark.dataSource.register(QuorateLogSource)


def _is_unchosen(context: SparkContext) -> bool:
    chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    return not chosen and context.master.startswith("local")


def _require_packages(context: SparkContext) -> None:
    remedy = (
        f"set PYSPARK_PYTHON before the session starts, here to {sys.executable}; on a cluster add what "
        "`quorate pipeline pack` writes with addPyFile"
    )
    try:
        # Only the standard library's own function travels: ours may not be there.
        there = context.parallelize(_NEEDED, 1).filter(find_spec).collect()
    except (Py4JError, PySparkException) as error:
        raise BadSetting(
            f"the Python of this session's workers, {context.pythonExec}, runs no task: {translated(error)}: {remedy}"
        ) from error
    if lacking := [name for name in _NEEDED if name not in there]:
        raise BadSetting(
            f"the Python of this session's workers, {context.pythonExec}, lacks {', '.join(lacking)}: {remedy}"
        )
