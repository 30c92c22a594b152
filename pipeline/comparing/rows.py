"""The rows of a side of a comparison: files of a table, and of their rows those that held at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.tables.history_schema import VALIDITY
from quorate.pipeline.tables.table_reading import column_names, grouped_files, read_table, table_files

#: What says when a version held, not what it is.
_VALIDITY: Final = frozenset(field.name for field in VALIDITY)
_TIME: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class ComparedMoment:
    """An offset: all records below it; or a time: all records up to it; or neither: the end."""

    offset: int | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        if self.time is not None:
            return self.time.isoformat()
        return "the end" if self.offset is None else f"offset {self.offset}"

    def holds(self) -> pc.Expression:
        """Whether a version held then."""
        end, until = pc.field("valid_to_offset"), pc.field("valid_to")
        if self.time is not None:
            at = pa.scalar(self.time, _TIME)
            return (pc.field("valid_from") <= at) & (until.is_null() | (until > at))
        if self.offset is None:
            return end.is_null()
        return (pc.field("valid_from_offset") < self.offset) & (end.is_null() | (end >= self.offset))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table, of one cluster. Travels to the workers, which read them."""

    files: tuple[str, ...]
    #: Bytes of each.
    sizes: tuple[int, ...]
    #: What every row has besides its validity, in the table's order.
    columns: tuple[str, ...]
    cluster_id: str
    #: Of versions when they have to hold; None: the table has no versions.
    moment: ComparedMoment | None = None

    @classmethod
    def of(cls, table: str, cluster_id: str, moment: ComparedMoment | None = None) -> Rows:
        """Those of a table as it is now; what is not Parquet in its directory is passed over."""
        files = table_files(table)
        names = (name for name in column_names(list(files)) if name not in _VALIDITY)
        return cls(tuple(files), tuple(files.values()), tuple(names), cluster_id, moment)

    def parts(self, part_bytes: int) -> Iterator[Rows]:
        """The same rows in parts, each of the least number of files that have so many bytes."""
        sizes = dict(zip(self.files, self.sizes, strict=True))
        for files in grouped_files(sizes, part_bytes):
            yield replace(self, files=tuple(files), sizes=tuple(sizes[file] for file in files))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read these columns."""
        wanted = pc.field("cluster_id") == self.cluster_id
        if self.moment is not None:
            wanted &= self.moment.holds()
        by = ("cluster_id",) if self.moment is None else ("cluster_id", *_VALIDITY)
        return read_table(self.files, columns, wanted, by)


def all_bytes(tables: Iterable[Rows]) -> int:
    """Of all their files."""
    return sum(sum(rows.sizes) for rows in tables)
