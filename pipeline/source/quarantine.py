"""Quarantine: damaged parts go into a side table, and the job goes on after them.

The side table is a directory of Parquet files, one for each stretch that was left out, named after its place: a task
that runs twice writes the same file twice. The driver makes the directory: a worker that does not see it fails.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

import pyarrow as pa

from quorate.metadata_log.errors import CorruptBatch
from quorate.pipeline.files.ranges import Range
from quorate.pipeline.files.resync import next_batch
from quorate.pipeline.files.walk import LogChunk, RecordSelection, read_range
from quorate.pipeline.tables.written import require_directory, write_part

T = TypeVar("T")

#: One row a stretch; both ends are exclusive, and null where nothing good follows and no end is known.
QUARANTINE_SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("end_position", pa.int64()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("end_offset", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
    ]
)


def make_quarantine(directory: str | None) -> None:
    """In the driver, before anything is read: make the directory, if there is to be one."""
    if directory is not None:
        os.makedirs(directory, exist_ok=True)


def read_around_damage(
    one: Range, wanted: RecordSelection, look: Callable[[LogChunk], T], directory: str, cluster_id: str
) -> Iterator[T]:
    """``look`` at every chunk of a range that is good, and note what is not."""
    while True:
        chunk = None
        try:
            for chunk in read_range(one, wanted):
                result = look(chunk)
                chunk = None
                yield result
            return
        except CorruptBatch as damage:
            offset = one.base_offset if damage.offset is None else damage.offset
            if chunk is not None:
                # What stands before it in its chunk was not given yet, and is good.
                base, start = int(chunk.batches.base_offsets[0]), int(chunk.batches.positions[0])
                before = replace(
                    one, first_byte=start, end_byte=damage.position, base_offset=base, end_offset=offset, epoch_max=None
                )
                yield from map(look, read_range(before, wanted))
            following = next_batch(one, damage.position, offset)
            row = {
                "cluster_id": cluster_id,
                "file": one.file.name,
                "position": damage.position,
                "end_position": one.end_byte if following is None else following.position,
                "offset": offset,
                "end_offset": one.end_offset if following is None else following.offset,
                "reason": damage.reason,
            }
            _put_aside(directory, row)
            if following is None:
                return
            one = replace(
                one,
                first_byte=following.position,
                base_offset=following.offset,
                epoch_min=min(one.epoch_min, following.epoch),
            )


def _put_aside(directory: str, row: dict[str, Any]) -> None:
    require_directory(directory)
    place = f"{row['cluster_id']}\0{row['file']}\0{row['position']}"
    path = os.path.join(directory, f"damaged-{hashlib.sha256(place.encode()).hexdigest()[:24]}.parquet")
    write_part(pa.Table.from_pylist([row], QUARANTINE_SCHEMA), path)
