"""The session itself: where it runs, what it is set to, how errors of workers come back."""

import sys
from collections.abc import Iterator

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from metadata_log.errors import CorruptBatch
from pipeline.errors import WorkerError
from pipeline.failures import translated


def test_session_of_tests_runs_jobs_in_this_interpreter(spark: SparkSession) -> None:
    """Workers with another Python would lack our packages."""

    def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(2, numPartitions=2).mapInArrow(interpreter, "python string").collect()

    assert [row.python for row in rows] == [sys.executable] * 2


def test_workers_have_the_installed_pyspark(spark: SparkSession) -> None:
    """Not that of a zip file, in which no module is ever compiled for good."""

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__] * batch.num_rows})

    assert spark.range(1).mapInArrow(place, "place string").first() == (pyspark.__file__,)


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
