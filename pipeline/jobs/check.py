"""Does Spark run here, and what is it made of?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkFound:
    """The parts that a session turned out to be made of."""

    spark_version: str
    master: str
    driver_memory: str
    java_version: str
    java_home: str
    python_version: str
    #: The interpreters of the workers that answered, without doubles.
    worker_pythons: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def check_spark(spark: SparkSession) -> SparkFound:
    """Run a small job in Python workers on all cores, and return what was found."""

    def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})

    context = spark.sparkContext
    cores = context.defaultParallelism
    rows = spark.range(cores, numPartitions=cores).mapInArrow(interpreter, "python string").distinct().collect()
    return SparkFound(
        spark_version=spark.version,
        master=context.master,
        driver_memory=context.getConf().get("spark.driver.memory", "1g"),
        java_version=context.getSystemProperty("java.version"),
        java_home=context.getSystemProperty("java.home"),
        python_version=".".join(map(str, sys.version_info[:3])),
        worker_pythons=tuple(sorted(row.python for row in rows)),
    )
