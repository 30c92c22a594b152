"""A Parquet table that a stream fills: every step once, whole or not at all, whoever reads it.

::

    TABLE/chunk=000000000012/part-*.parquet   the rows of step 12, and _chunk.json, which says what they are
    TABLE/_writing-12/                        step 12 while it is written; no reader looks at names with an underscore
    TABLE/_checkpoint/                        Spark's own, so that it and the chunks are kept or removed together

Spark runs a step again when it does not know whether it was done; it has the same number then, and the same rows. A
step is written beside the table, checked, synced, and enters the table by one rename: what is there is done, and is not
done again. Checked is that all rows that Spark wrote are here, and that the offsets of each cluster go on where the
step before ended, each of them once.
The table is a directory of a POSIX file system: object stores have no such rename.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.uris import local
from quorate.pipeline.tables.entering import enter
from quorate.pipeline.tables.written import require_rows

_CHUNK: Final = re.compile(r"chunk=(\d{12})")
_NOTE: Final = "_chunk.json"


class BrokenTable(PipelineError):
    """A table of a stream that cannot be gone on with."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The records of one cluster in a chunk."""

    first_offset: int
    #: Exclusive.
    end_offset: int


@dataclass(frozen=True, slots=True)
class TableChunk:
    """A step that is in the table."""

    number: int
    #: By cluster id; of those that had records.
    stretches: Mapping[str, Stretch]
    #: By cluster id, where this and all steps before it ended.
    ends: Mapping[str, int]

    @property
    def records(self) -> int:
        """Rows."""
        return sum(one.end_offset - one.first_offset for one in self.stretches.values())


class StreamTable:
    """One table, filled by one stream at a time."""

    def __init__(self, path: Path) -> None:
        self.path = local(str(path))

    @property
    def checkpoint(self) -> Path:
        """The place where Spark keeps how far the stream is."""
        return self.path / "_checkpoint"

    def chunks(self) -> list[TableChunk]:
        """The steps that are there, ascending.

        Raises:
            BrokenTable: one of them does not say what it is.
        """
        if not self.path.is_dir():
            return []
        return [self._chunk(name) for name in sorted(os.listdir(self.path)) if _CHUNK.fullmatch(name)]

    def add(self, rows: DataFrame, number: int) -> TableChunk | None:
        """Put a step's rows into the table. None where it was there already, or has no rows.

        Raises:
            BrokenTable: the rows do not go on where the table ends; it is left as it is. NotShared: they are not here.
        """
        target = self.path / f"chunk={number:012d}"
        if target.exists():
            return None
        writing = self.path / f"_writing-{number}"
        self.path.mkdir(parents=True, exist_ok=True)
        seen = Observation()
        counted = rows.observe(seen, sf.count(sf.lit(1)).alias("rows"))
        counted.write.mode("overwrite").option("compression", "zstd").parquet(writing.resolve().as_uri())
        require_rows(str(writing), seen.get["rows"])
        before = [chunk for chunk in self.chunks() if chunk.number < number]
        chunk = _checked(writing, number, before[-1].ends if before else {})
        if not chunk.records:
            shutil.rmtree(writing)
            return None
        (writing / _NOTE).write_text(json.dumps(asdict(chunk)), "utf-8")
        enter(writing, target)
        return chunk

    def _chunk(self, name: str) -> TableChunk:
        path = self.path / name / _NOTE
        try:
            data = json.loads(path.read_text("utf-8"))
            stretches = {cluster: Stretch(**one) for cluster, one in data["stretches"].items()}
            return TableChunk(data["number"], stretches, data["ends"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BrokenTable(f"{path}: unreadable ({error}); the table was made by something else") from error


def _checked(writing: Path, number: int, ends: Mapping[str, int]) -> TableChunk:
    """The rows as a chunk, each offset once and none left out."""
    files = [str(path) for path in writing.glob("*.parquet")]
    if not files:
        return TableChunk(number, {}, dict(ends))
    table = ds.dataset(files, format="parquet").to_table(columns=["cluster_id", "offset"])
    found = table.group_by("cluster_id").aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count"), ("offset", "count_distinct")]
    )
    stretches = {}
    for row in found.to_pylist():
        cluster, first, end = row["cluster_id"], row["offset_min"], row["offset_max"] + 1
        due = ends.get(cluster, first)
        if first != due or not row["offset_count"] == row["offset_count_distinct"] == end - first:
            raise BrokenTable(
                f"{writing.parent}: step {number} has {row['offset_count']} records of cluster {cluster} from offset "
                f"{first} to {end - 1}, where {due} is due; the table is left as it was"
            )
        stretches[cluster] = Stretch(first, end)
    return TableChunk(number, stretches, {**ends, **{cluster: one.end_offset for cluster, one in stretches.items()}})
