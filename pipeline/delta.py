"""Delta tables: beside the Parquet files of a table a log that says which of them are in it, and what is in them.

The files are the same as without it; nothing is written twice. Paths in the log are relative to the table, so it stays
valid where the directory gets another name.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def make_delta(directory: Path, day: str | None) -> None:
    """Make a Delta table of each directory in ``directory``, all of which hold Parquet files.

    Args:
        day: the column that directories ``NAME=2026-01-05`` in a table stand for; None where there are none. A table
            without a row has the column too, but no file: Parquet's lies beside its log, for those who read no Delta.
    """
    from deltalake import DeltaTable, Field, Schema, convert_to_deltalake  # an extra of its own

    for table in sorted(path for path in directory.iterdir() if path.is_dir()):
        if day is None:
            convert_to_deltalake(table)
        elif any(table.glob(f"{day}=*")):
            convert_to_deltalake(table, partition_by=Schema([Field(day, "date")]), partition_strategy="hive")
        else:
            schema = pq.read_schema(next(table.glob("*.parquet"))).append(pa.field(day, pa.date32()))
            DeltaTable.create(table, schema, partition_by=day)
