"""The plan of a scan: tasks, each some consecutive ranges of files, and what must be found at both ends of each range.

A segment that is not much larger than a task is one range, planned without opening it: its name says where it begins,
the next one's name where it must end. A larger one is cut at batch borders by a walk of its headers (some 0.5 us a
batch). What is packed is read from its first byte, so a member of an archive is one range whatever its size.
The expectations are what makes parallel reading as safe as reading in order: a range that does not end where the next
begins is damage, never a short read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from quorate.pipeline.files.archives import FileLocation, Form
from quorate.pipeline.files.headers import batch_headers
from quorate.pipeline.files.inputs import InputCluster, InputFile

#: Bytes of log in a task: a second or two of work, and some 200 MB of memory. Jobs that fold a log into states have
#: larger ones: ``jobs.folding.TASK_BYTES``.
RANGE_BYTES: Final = 32 * 1024 * 1024
#: A file up to so many times the bytes of a task is not cut: that saves the walk of its headers.
_UNCUT: Final = 1.5


@dataclass(frozen=True, slots=True)
class Range:
    """Some consecutive batches of one file."""

    file: InputFile
    #: Of the first batch.
    first_byte: int
    #: Exclusive; None = to the end of the file.
    end_byte: int | None
    #: Offset that the first batch must have; in a checkpoint they count from 0.
    base_offset: int
    #: Offset that must be due at the end (exclusive); None = whatever the file ends with.
    end_offset: int | None
    #: No batch may have a lower epoch, or a higher one (None = there is no bound).
    epoch_min: int = 0
    epoch_max: int | None = None
    #: What follows, for the sentence that says that something is missing in between.
    next_file: str | None = None
    #: From this offset on a batch cut short at the end of the file is a torn tail, which ends the range; None = never.
    torn_from: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The ranges that one worker reads at a stretch."""

    #: From 0 on, in the order of the log; those of checkpoints are numbered apart.
    number: int
    cluster_id: str
    ranges: tuple[Range, ...]


def plan_log(
    cluster: InputCluster,
    *,
    first_offset: int | None = None,
    end_offset: int | None = None,
    range_bytes: int = RANGE_BYTES,
) -> list[Task]:
    """Tasks that together hold every batch of the log with records in [first_offset, end_offset), in order.

    The batches at both ends may hold records outside; ``walk.read_range`` leaves those out. Without ``first_offset``
    the log is read from where it begins; ``replay_bases`` says whether that will do.

    Raises:
        StorageError: a file that is to be cut cannot be read. Damage is found by who reads the ranges.
    """
    ranges = [one for one in _segment_ranges(cluster, range_bytes) if _overlaps(one, first_offset, end_offset)]
    return grouped(cluster, ranges, range_bytes)


def plan_checkpoint(cluster: InputCluster, file: InputFile, *, range_bytes: int = RANGE_BYTES) -> list[Task]:
    """Tasks that together hold a checkpoint; raises as ``plan_log`` does."""
    epoch = file.epoch or 0
    return grouped(cluster, list(_cut(Range(file, 0, None, 0, None, epoch, epoch), range_bytes)), range_bytes)


def task_to_json(task: Task) -> str:
    """For rows of a data frame; read back by ``task_from_json``."""
    data = asdict(task)
    for one in data["ranges"]:
        one["file"]["place"]["form"] = one["file"]["place"]["form"].value
    return json.dumps(data)


def task_from_json(text: str) -> Task:
    """The task that ``task_to_json`` wrote."""
    data = json.loads(text)
    ranges = []
    for one in data["ranges"]:
        file = one.pop("file")
        place = file.pop("place")
        ranges.append(Range(InputFile(FileLocation(**place | {"form": Form(place["form"])}), **file), **one))
    return Task(data["number"], data["cluster_id"], tuple(ranges))


# --- cutting -----------------------------------------------------------------------------------------


def _segment_ranges(cluster: InputCluster, range_bytes: int) -> Iterator[Range]:
    segments = cluster.segments
    for index, file in enumerate(segments):
        following = segments[index + 1] if index + 1 < len(segments) else None
        whole = Range(
            file,
            0,
            # A live log grows meanwhile: all passes over it, and all repeats of a task, see the same.
            file.size if file.place.form is Form.PLAIN else None,
            file.offset,
            following.offset if following else None,
            epoch_max=following.epoch if following else None,
            next_file=following.name if following else None,
            torn_from=cluster.mark.durable_end if cluster.mark is not None and following is None else None,
        )
        yield from _cut(whole, range_bytes)


def _cut(whole: Range, range_bytes: int) -> Iterator[Range]:
    """The whole file in pieces of about ``range_bytes``."""
    file = whole.file
    if file.place.form is not Form.PLAIN or file.size <= _UNCUT * range_bytes:
        yield whole
        return
    start, offset, epoch = 0, whole.base_offset, whole.epoch_min
    for position, end_offset, end_epoch in _cuts(file, range_bytes):
        yield replace(
            whole, first_byte=start, end_byte=position, base_offset=offset, end_offset=end_offset, epoch_min=epoch,
            epoch_max=end_epoch, next_file=None, torn_from=None,
        )  # fmt: skip
        start, offset, epoch = position, end_offset, end_epoch
    yield replace(whole, first_byte=start, base_offset=offset, epoch_min=epoch)


def _cuts(file: InputFile, range_bytes: int) -> Iterator[tuple[int, int, int]]:
    """The places at which a file may be cut, about ``range_bytes`` apart: position, offset and epoch of the batch that
    begins there.

    There are none behind the first header that is wrong: whoever reads the last piece says what is.
    """
    due, next_cut = None, range_bytes
    for position, (base, _, epoch, _, _, _, count) in batch_headers(file):
        if due is not None and base != due:
            return
        if position >= next_cut:
            yield position, base, epoch
            next_cut = position + range_bytes
        due = base + count


def _overlaps(one: Range, first_offset: int | None, end_offset: int | None) -> bool:
    if end_offset is not None and one.base_offset >= end_offset:
        return False
    return first_offset is None or one.end_offset is None or one.end_offset > first_offset


def grouped(cluster: InputCluster, ranges: Sequence[Range], range_bytes: int) -> list[Task]:
    """Ranges in order as tasks of about ``range_bytes``, or one file."""
    groups: list[list[Range]] = []
    filled = range_bytes
    for one in ranges:
        size = _bytes(one)
        if filled + size > _UNCUT * range_bytes or filled >= range_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(one)
        filled += size
    return [Task(number, cluster.cluster_id, tuple(group)) for number, group in enumerate(groups)]


def _bytes(one: Range) -> int:
    return (one.file.size if one.end_byte is None else one.end_byte) - one.first_byte


def all_ranges(tasks: Iterable[Task]) -> Iterator[Range]:
    """The ranges of all tasks, in order."""
    for task in tasks:
        yield from task.ranges
