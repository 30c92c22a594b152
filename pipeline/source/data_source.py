"""``spark.read.format("quorate-log")``: rows of metadata logs, at rest and growing.

``registering.register`` makes a session know it. Options are in ``docs/pipeline.md``, columns in
``pipeline.source.schema``.
Spark does not tell a Python source which columns a query uses. Where only some are needed, name them: with the option
``columns``, or as the schema of the read, as ``.schema("offset bigint, type string")``.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.source.batch_reader import LogReader
from quorate.pipeline.source.options import parse_options
from quorate.pipeline.source.schema import COLUMN_TYPES
from quorate.pipeline.source.stream_reader import LogStreamReader

FORMAT = "quorate-log"


class QuorateLogSource(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        """As in ``format(...)``."""
        return FORMAT

    def schema(self) -> StructType:
        """All columns, or those of the option ``columns``."""
        names = parse_options(self.options).columns or tuple(COLUMN_TYPES)
        return from_arrow_schema(pa.schema([(name, COLUMN_TYPES[name]) for name in names]))

    def reader(self, schema: StructType) -> LogReader:
        """For reading at rest."""
        return LogReader(parse_options(self.options), checked_schema(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        """For reading as it grows.

        Raises:
            BadSetting: options that no stream has.
        """
        options = parse_options(self.options)
        if options.end_offset is not None or options.checkpoints:
            raise BadSetting("a stream of quorate-log has neither an endOffset nor checkpoints: it follows the log")
        return LogStreamReader(options, checked_schema(schema))


def checked_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of the columns that are wanted.

    Raises:
        BadSetting: one of them is not there, or is of another type.
    """
    found = to_arrow_schema(schema, timezone="UTC")
    for field in found:
        known = COLUMN_TYPES.get(field.name)
        if known is None:
            raise BadSetting(f"quorate-log has no column {field.name}; it has {', '.join(COLUMN_TYPES)}")
        if field.type != known:
            raise BadSetting(f"column {field.name} of quorate-log is of type {known}, not {field.type}")
    return found
