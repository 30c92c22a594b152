"""The session itself: where it runs, what it is set to, how errors of workers come back."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import CorruptBatch
from quorate.pipeline.errors import WorkerError
from quorate.pipeline.failures import translated
from quorate.pipeline.spark.worker_use import WorkerUse
from tests.spark.strangers import SECRET_WANTED, answer_to_a_stranger


def test_session_of_tests_runs_jobs_in_this_interpreter(spark: SparkSession) -> None:
    """Workers with another Python would lack our packages."""

    def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(2, numPartitions=2).mapInArrow(interpreter, "python string").collect()

    assert [row.python for row in rows] == [sys.executable] * 2


def test_stranger_on_this_machine_is_asked_for_the_secret_of_the_session(spark: SparkSession) -> None:
    """Spark listens although its only process is this one's: whoever it believed would have it run what he likes."""
    port = spark.sparkContext.getConf().get("spark.driver.port")

    assert SECRET_WANTED in answer_to_a_stranger(f"127.0.0.1:{port}")


def test_workers_have_the_installed_pyspark(spark: SparkSession) -> None:
    """Not that of a zip file, in which no module is ever compiled for good."""

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__] * batch.num_rows})

    assert spark.range(1).mapInArrow(place, "place string").first() == (pyspark.__file__,)


def test_use_of_all_workers_is_gathered(spark: SparkSession) -> None:
    """Times are added up; of memory the most counts."""
    use = WorkerUse(spark)

    def busy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            clock = use.clock()
            sum(range(1_000_000))
            clock.stop("adding")
            clock.stop("nothing")
            yield batch

    once = spark.range(1, numPartitions=1).mapInArrow(busy, "id long")
    once.collect()
    of_one = use.processor_seconds["adding"]
    for _ in range(3):
        once.collect()

    assert use.processor_seconds.keys() == {"adding", "nothing"}
    assert of_one > 0
    assert use.processor_seconds["adding"] > of_one
    assert use.processor_seconds["nothing"] < of_one
    assert 20 < use.mb_max < 10_000


def test_error_of_ours_in_a_worker_keeps_its_sentence(spark: SparkSession) -> None:
    """What a worker finds wrong with a file is said to the user as if it had been found here."""

    def refuse(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise CorruptBatch("a directory/0.log", 17, 3, "CRC: found 1, computed 2")

    with pytest.raises(Exception, match="damaged") as caught:
        spark.range(2, numPartitions=2).mapInArrow(refuse, "id long").collect()

    error = translated(caught.value)
    assert isinstance(error, WorkerError)
    assert (str(error), error.kind) == (
        "a directory/0.log: damaged at byte 17, offset 3: CRC: found 1, computed 2",
        "CorruptBatch",
    )
