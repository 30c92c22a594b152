"""One Spark session for nearly all tests: a session is a JVM of its own, and its start is dear.

Those that start Spark themselves, as a user does, run beside them in another worker, which takes some others too.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quorate.pipeline.spark.session import SessionSettings, spark_session
from tests.spark.processes import QUICK_JAVA

_HERE = Path(__file__).parent

#: The first test waits for the session's start: seconds, or minutes where other programs have the cores.
_TIMEOUT_S = 900

#: A plan of a test meets a few rows once: to compile it, or to look at sizes on the way, takes longer than to run it.
_SMALL_DATA = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all of them share: two cores, a heap of a gigabyte.

    It lives beside whatever else its worker runs, so a Ctrl-C that one of those presses is not the session's.
    """
    settings = SessionSettings(
        name="tests", master="local[2]", driver_memory="1g", java_options=QUICK_JAVA, conf=_SMALL_DATA
    )
    usual = signal.getsignal(signal.SIGINT)
    with spark_session(settings) as session:
        signal.signal(signal.SIGINT, usual)
        yield session


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups, wherever the run begins
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each group to one worker."""
    for item in items:
        if _HERE in item.path.parents:
            assert isinstance(item, pytest.Function)
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
            group = "spark" if "spark" in item.fixturenames else "spark-processes"
            item.add_marker(pytest.mark.xdist_group(group))
