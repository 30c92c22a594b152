"""The tables of a history on disk: Parquet, a directory a day.

``OUT/TABLE/day=2026-01-05/part-0003.parquet``: the versions that begin on that day (UTC), those of one partition
together. A table without a version has one file, without a day and a row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.tables.written import NOTHING, Written, require_directory, write_part

#: The column that the directories stand for.
DAY: Final = "day"
_DAY_US: Final = 86_400_000_000
#: Columns written as numbers and the texts once; for others looking for doubles costs more than it saves.
_DICTIONARIES: Final = ["cluster_id", "topic_id", "topic", "change", "directories.list.element", "resource", "name"]
#: Those that readers leave files out by.
_STATISTICS: Final = ["cluster_id", "valid_from_offset", "valid_to_offset", "valid_from", "valid_to"]


def part_name(bucket: int) -> str:
    """The part of a file name that tells the files of a bucket from others'."""
    return f"{bucket:04d}"


def write_days(table: pa.Table, directory: str, name: str, part: str) -> Written:
    """Write versions by the day on which they begin; a worker that does it again writes the same files.

    Args:
        table: versions. directory: that of all tables. name: of this one. part: what tells its files from others'.

    Raises:
        NotShared: the directory is not here.
    """
    require_directory(directory)
    if not table.num_rows:
        return NOTHING
    days = pc.floor_temporal(table["valid_from"], unit="day").cast(pa.int64()).to_numpy() // _DAY_US
    if (days[1:] < days[:-1]).any():
        order = np.argsort(days, kind="stable")
        days = days[order]
        table = table.take(pa.array(order))
    starts = np.flatnonzero(np.concatenate([[True], days[1:] != days[:-1]]))
    written = NOTHING
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(days)], strict=True):
        day = np.datetime64(int(days[start]), "D")
        written += _write(table.slice(start, end - start), f"{directory}/{name}/{DAY}={day}/part-{part}.parquet")
    return written


def write_empty(schema: pa.Schema, directory: str, name: str) -> Written:
    """Write a table that has no version, so that whoever reads finds its columns."""
    return _write(schema.empty_table(), f"{directory}/{name}/part-0000.parquet")


def _write(table: pa.Table, path: str) -> Written:
    return write_part(
        table,
        path,
        compression="zstd",
        compression_level=1,
        use_dictionary=_DICTIONARIES,
        write_statistics=_STATISTICS,
    )
