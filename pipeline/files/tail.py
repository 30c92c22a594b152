"""Following logs that grow: up to where may be read, how far the next step goes, and what lies in between.

A place is an offset with the segment and the byte it is at, so that a step never reads again what was read before. It
also names the batch that was read last by where it begins and its epoch: a rebuilt quorum on a shorter log goes
on below, in another epoch, and its log must not be taken for the continuation of the one that was read.

**What may be read.** A record that is not committed may still be truncated, and would have been delivered for nothing.
The mark of a Quorate node (``metadata_log.segments.mark``) holds a lower bound of what is committed, and nothing above
it is read. Kafka's directories tell of no such bound: they are followed only where the caller says that uncommitted
records may be read too, as with a copy that nobody writes to; then all batches that are whole are read, and a torn tail
waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.batches.batch import HeaderFields
from quorate.metadata_log.errors import CorruptBatch
from quorate.pipeline.files.archives import Form
from quorate.pipeline.files.headers import batch_headers
from quorate.pipeline.files.inputs import InputCluster, InputError, InputFile
from quorate.pipeline.files.ranges import Range, Task, grouped
from quorate.pipeline.files.resync import next_batch

#: Of a place whose segment is to be looked up.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class TailPosition:
    """Up to where a log was read."""

    #: Of the next record.
    offset: int
    #: Base offset of the segment, ``UNKNOWN`` at first, and the byte in it where the batch of that record begins.
    segment: int = UNKNOWN
    position: int = 0
    #: Where in the segment the batch begins that ends here, and its epoch; ``UNKNOWN`` where none was read.
    last_position: int = UNKNOWN
    last_epoch: int = UNKNOWN


def readable_end(cluster: InputCluster, *, uncommitted: bool) -> int | None:
    """The offset up to which (exclusive) may be read, None = all whole batches.

    Raises:
        InputError: nothing tells what is committed, and ``uncommitted`` is not set.
    """
    if cluster.mark is not None:
        return cluster.mark.commit
    if not uncommitted:
        where = cluster.directory or (cluster.segments + cluster.checkpoints)[0].name
        raise InputError(
            where,
            "has no mark of a Quorate node, so nothing tells which of its records are committed",
            "set the option uncommitted to true if nobody writes to it, or if truncated records do no harm",
        )
    return None


def first_place(cluster: InputCluster, offset: int | None) -> TailPosition:
    """The position at which following begins: at ``offset``, or at the begin of the log."""
    first = cluster.first_offset or 0
    return TailPosition(first if offset is None else offset)


def advance(
    cluster: InputCluster, start: TailPosition, end: int | None, records_max: int | None = None
) -> TailPosition:
    """Past the batches from ``start`` on that end at or before ``end``, at most about ``records_max`` records.

    At least one batch if there is one; ``start`` itself if there is none.

    Raises:
        InputError: the log no longer holds ``start``. CorruptBatch: a header on the way is wrong.
    """
    if end is not None and end <= start.offset:
        return start
    place = start
    limit = None if records_max is None else start.offset + records_max
    for segment, position, fields in _batches(cluster, start, whole=end is None):
        base, size, epoch, _, _, _, count = fields
        batch_end = base + count
        if end is not None and batch_end > end:
            break
        if batch_end <= start.offset:
            continue
        if limit is not None and batch_end > limit and place.offset > start.offset:
            break
        place = TailPosition(batch_end, segment.offset, position + size, position, epoch)
    else:
        if end is not None and place.offset < end:
            last = cluster.segments[-1]
            raise CorruptBatch(last.name, place.position, place.offset, f"the log ends here, but {end} was committed")
    return place


def tasks_between(cluster: InputCluster, start: TailPosition, end: TailPosition, range_bytes: int) -> list[Task]:
    """Tasks that together hold the batches from one place to another that ``advance`` gave; the same every time.

    Raises:
        InputError: the log no longer holds ``start``.
    """
    if end.offset <= start.offset:
        return []
    ranges: list[Range] = []
    opened: tuple[InputFile, int, int, int] | None = None
    last_end = start.offset
    for segment, position, (base, size, epoch, _, _, _, count) in _batches(cluster, start, whole=False):
        if base >= end.offset:
            break
        if base + count <= start.offset:
            continue
        if opened is not None and (opened[0] is not segment or position - opened[1] >= range_bytes):
            ranges.append(_range(opened, None if opened[0] is not segment else position, base, epoch))
            opened = None
        if opened is None:
            opened = (segment, position, base, epoch)
        last_end = base + count
        end_position = position + size
        if last_end == end.offset:
            _require_epoch(segment, end, epoch)
            ranges.append(_range(opened, end_position, last_end, None))
            break
    if last_end != end.offset:
        raise InputError(
            cluster.segments[-1].name,
            f"the log ends at offset {last_end}, before offset {end.offset} that was read from it",
            "it was truncated or replaced: begin again with a new table",
        )
    return grouped(cluster, ranges, range_bytes)


def _range(opened: tuple[InputFile, int, int, int], end_byte: int | None, end: int, epoch_max: int | None) -> Range:
    segment, position, base, epoch = opened
    size = segment.size if end_byte is None else end_byte
    return Range(segment, position, size, base, end, epoch_min=epoch, epoch_max=epoch_max)


def _batches(
    cluster: InputCluster, start: TailPosition, *, whole: bool
) -> Iterator[tuple[InputFile, int, HeaderFields]]:
    """Segment, position and header of the batches from ``start`` on; ``whole``: those that are there to their end."""
    segments = cluster.segments[_segment_of(cluster, start) :]
    is_known = segments[0].offset == start.segment
    if is_known:
        _require_last_batch(segments[0], start)
    position, due = (start.position, start.offset) if is_known else (0, segments[0].offset)
    for segment in segments:
        if position > segment.size:
            raise InputError(
                segment.name, f"has {segment.size} bytes, but was read up to byte {position}",
                "it was truncated or replaced: begin again with a new table",
            )  # fmt: skip
        if due != segment.offset and not position:
            raise CorruptBatch(segment.name, 0, due, f"it begins at offset {segment.offset}: restore what is missing")
        _require_plain(segment)
        # A header that is wrong ends the segment: in the last one it is being written, else the next one is not due.
        for at, fields in batch_headers(segment, position, whole=whole):
            if fields[0] != due:
                raise CorruptBatch(segment.name, at, due, f"base offset {fields[0]} where {due} is due")
            position = at + fields[1]
            due = fields[0] + fields[6]
            if fields[0] < start.offset <= due:
                _require_epoch(segment, start, fields[2] if due == start.offset else UNKNOWN)
            yield segment, at, fields
        if position < segment.size and next_batch(_rest(segment, position, due), position, due) is not None:
            raise CorruptBatch(segment.name, position, due, "no batch begins here, but another one follows")
        position = 0


def _require_last_batch(segment: InputFile, place: TailPosition) -> None:
    """The batch that was read last is still there, at its byte."""
    if place.last_epoch == UNKNOWN or place.position > segment.size:
        return
    _, fields = next(batch_headers(segment, place.last_position), (0, None))
    is_there = fields is not None and fields[0] + fields[6] == place.offset
    _require_epoch(segment, place, fields[2] if fields is not None and is_there else UNKNOWN)


def _require_epoch(segment: InputFile, place: TailPosition, epoch: int) -> None:
    """``epoch``: of the batch that ends at the place, ``UNKNOWN`` where none does."""
    if place.last_epoch not in (UNKNOWN, epoch):
        here = "no batch ends there" if epoch == UNKNOWN else f"the batch that ends there is of epoch {epoch}"
        raise InputError(
            segment.name,
            f"was read up to offset {place.offset}, epoch {place.last_epoch}, and {here}: it is another log, as after a"
            " recovery that founded the quorum anew on a shorter one",
            "begin again with a new table",
        )


def _rest(segment: InputFile, position: int, due: int) -> Range:
    return Range(segment, position, segment.size, due, None)


def _segment_of(cluster: InputCluster, start: TailPosition) -> int:
    """The index of the segment that holds the record, or will hold it."""
    first = cluster.first_offset
    if first is None or first > start.offset:
        begins = "holds no segment" if first is None else f"begins at offset {first}"
        raise InputError(
            cluster.directory or cluster.cluster_id,
            f"the log {begins}, but the record at offset {start.offset} is the next to be read",
            "retention removed it: add a directory with the older segments to the paths, or begin a new table",
        )
    # The one that holds the batch that was read last, as long as it is there: it is compared.
    reach = start.offset - (start.last_epoch != UNKNOWN)
    return max((index for index, file in enumerate(cluster.segments) if file.offset <= reach), default=0)


def _require_plain(segment: InputFile) -> None:
    if segment.place.form is not Form.PLAIN:
        raise InputError(segment.name, "is packed, and a stream reads plain segments only", "unpack it")
