"""Tables of jobs as data frames of Spark's: our own workers read the files, wherever they are.

Spark's own reader of Parquet knows neither Delta's log nor the stores of ``storage``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorate.pipeline.tables.table_reading import grouped_files, plain, read_table, table_files

#: Bytes of Parquet that one task reads.
_TASK_BYTES: Final = 8 * 1024 * 1024


def table_frame(spark: SparkSession, table: str, schema: pa.Schema) -> DataFrame:
    """The columns of a schema of a table; texts are texts, however the schema or the files hold them."""
    names = schema.names
    tasks = grouped_files(table_files(table), _TASK_BYTES)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for paths in batch.column(0).to_pylist():
                for path in paths:
                    yield from read_table([path], names).to_batches()

    rows = spark.sparkContext.parallelize([(paths,) for paths in tasks], max(1, len(tasks)))
    plan = spark.createDataFrame(rows, "files array<string>")
    return plan.mapInArrow(read, from_arrow_schema(pa.schema([(field.name, plain(field.type)) for field in schema])))
