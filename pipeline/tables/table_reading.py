"""The tables of jobs as those that follow read them: which files are in a table, and texts as texts.

Writers hold texts differently: as numbers and each text once, plain, or as views of a buffer, which Arrow compares with
nothing. One table may have files of all of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quorate.pipeline.files import storage
from quorate.pipeline.tables.delta import is_delta, live_files


def table_files(table: str) -> dict[str, int]:
    """The Parquet files that are in a table, with their bytes; of a Delta table those that its log names.

    A table without a row has its empty file.

    Raises:
        DeltaMissing: it is a Delta table, and the package that reads its log is not installed.
    """
    there = {path: size for path, size in storage.files_under(table).items() if _is_part(path)}
    if not is_delta(table):
        return there
    named = {one.path: one.size for one in live_files(table)}
    return named or {path: size for path, size in there.items() if os.path.dirname(path) == table}


def grouped_files(files: Mapping[str, int], task_bytes: int) -> list[list[str]]:
    """Files, with their bytes, in order and in groups of the least number that have so many bytes."""
    groups: list[list[str]] = []
    filled = task_bytes
    for path, size in files.items():
        if filled >= task_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(path)
        filled += size
    return groups


def _is_part(path: str) -> bool:
    name = os.path.basename(path)
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def read_table(
    table: str | Sequence[str], columns: Sequence[str], wanted: pc.Expression | None = None, by: Sequence[str] = ()
) -> pa.Table:
    """Columns of a table, or of some files of one.

    Args:
        wanted: which rows; None: all. by: the columns that it looks at, besides those that are read.
    """
    files = list(table_files(table)) if isinstance(table, str) else table
    first = storage.dataset(files[:1]).schema
    found = storage.dataset(files, pa.schema([field.with_type(plain(field.type)) for field in first]))
    batches = found.to_batches(columns=[*columns, *(name for name in by if name not in columns)], use_threads=False)
    # Not by the scan: of views of texts it cannot compare what the file's statistics say.
    parts = (pa.Table.from_batches([batch]) for batch in batches)
    kept = [(part if wanted is None else part.filter(wanted)).select(list(columns)) for part in parts]
    return pa.concat_tables(kept) if kept else found.schema.empty_table().select(list(columns))


def column_names(files: Sequence[str]) -> list[str]:
    """Those of some files of one table."""
    names: list[str] = storage.dataset(files[:1]).schema.names
    return names


def read_file(path: str, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, as it has them, from one file."""
    with storage.open_file(path) as file:
        table = pq.ParquetFile(file).read(columns=schema.names, use_threads=False)
    columns = [_as(table[field.name], field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        return column.cast(kind.value_type).dictionary_encode()
    return column if column.type == kind else column.cast(kind)


def plain(kind: pa.DataType) -> pa.DataType:
    """A column's type with texts as texts, each where it stands."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain(field.type)) for field in kind])
    return kind
