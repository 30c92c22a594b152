"""The outages of a part of a log: read back from its end to the checkpoint that the part lies behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quorate.metadata_log.batches.batch import BatchHeader, parse_header
from quorate.scripts.cli.logs.history_places import Log, places, telling_of_reading
from quorate.scripts.cli.logs.time_spans import TimeSpan, say_where_it_ends
from quorate.scripts.terminal.output import format_time
from quorate.snapshots.checkpoints.stretches import LogStretch
from quorate.snapshots.incidents.reading.log_versions import log_time_us, read_versions
from quorate.snapshots.incidents.serial.search import SerialFindings, search
from quorate.snapshots.incidents.thresholds import Thresholds
from quorate.snapshots.replay.replay_state import ReplayState


class Past(NamedTuple):
    """The findings of what was read, and the offsets of the part that was asked for."""

    found: SerialFindings
    first_offset: int
    #: Exclusive.
    end_offset: int

    def holds(self, from_offset: int, to_offset: int | None, *, is_open: bool = False) -> bool:
        """Whether what went on between two offsets, or still goes on, touches the part that was asked for."""
        last = from_offset if to_offset is None else max(from_offset, to_offset)
        return from_offset < self.end_offset and (is_open or last >= self.first_offset)


def read_past(
    paths: Sequence[str] | None,
    span: TimeSpan,
    thresholds: Thresholds,
    controllers: str | None,
    secret_file: Path | None,
) -> Past:
    """Read a log, of places as ``places`` has it, up to the end of the span, as if it ended there.

    Says on standard error where the log begins later than the cluster, and what of it was not read.

    Raises:
        As ``places``. ReplayError: a record cannot be replayed. TooManyVersions: too much happened for one process.
    """
    with places(paths, controllers, secret_file) as (log, _), telling_of_reading(paths):
        stretches = _needed(log, span)
        part = _PartOfLog(span)
        versions = read_versions(stretches[0].start, part.batches(stretches), log.cluster_id)
        _say_where_it_begins(log, stretches[0].start, span)
        if part.end is not None:
            say_where_it_ends(span, part.end)
    end_us = None if part.end is None else log_time_us(part.end.timestamp)
    return Past(search(versions, thresholds, end_us), part.first_offset, part.end_offset)


def _needed(log: Log, span: TimeSpan) -> list[LogStretch]:
    """The stretches back to one that begins before the span; oldest first."""
    found: list[LogStretch] = []
    for stretch in log.stretches:
        found.insert(0, stretch)
        if span.begins_behind(stretch.start):
            break
    return found


class _PartOfLog:
    """The batches up to the end of a span, and the offsets between which they lie in it."""

    def __init__(self, span: TimeSpan) -> None:
        self._span = span
        self._is_in = False
        self.first_offset = self.end_offset = 0
        #: The last batch of the log before the end of the span; None: there is none.
        self.end: BatchHeader | None = None

    def batches(self, stretches: Sequence[LogStretch]) -> Iterator[bytes]:
        self.first_offset = self.end_offset = stretches[0].start.end_offset
        for stretch in stretches:
            for batch in stretch.batches:
                header = parse_header(batch)
                if self._span.is_over(header):
                    return
                if not self._is_in:
                    self._is_in = self._span.holds(header)
                    self.first_offset = header.base_offset if self._is_in else header.end_offset
                self.end_offset = header.end_offset
                self.end = header
                yield batch


def _say_where_it_begins(log: Log, start: ReplayState, span: TimeSpan) -> None:
    for reason in log.missing:
        sys.stderr.write(f"quorate: a log that may begin earlier was not read: {reason}\n")
    at = start.stable.provenance
    if at.end_offset and not span.begins_behind(start):
        begin = f"offset {at.end_offset}, time {format_time(at.log_time_ms)}"
        sys.stderr.write(f"quorate: the log begins at {begin}: of what was so then the cause is not known\n")
