"""Requests that are in the log: who asked, and the states before and after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.batches.batch import parse_header
from quorate.snapshots.difference.history import AuditLookup
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState


class WrittenRequest(NamedTuple):
    """A request that wrote records."""

    line: AuditLine
    #: Milliseconds since 1970.
    time_ms: int
    before: MetadataImage
    after: MetadataImage


class WrittenLog(NamedTuple):
    """The requests of a part of a log."""

    #: Those that are wanted, in the order of the log.
    requests: list[WrittenRequest]
    #: The state at its end.
    end: MetadataImage
    #: Offsets, ascending, at which something changed, and of which nobody says by which event.
    unknown: list[int]


def written_requests(
    start: ReplayState, batches: Iterable[bytes], audit: AuditLookup, is_wanted: Callable[[AuditLine], bool]
) -> WrittenLog:
    """The requests that are wanted.

    Args:
        start: what the first batch is replayed onto.
        audit: is asked about batches in their order.

    Raises:
        ReplayError, MalformedData: a batch cannot be replayed.
    """
    found: list[WrittenRequest] = []
    unknown: list[int] = []
    state = start
    #: The place of the request that began the open transaction; None: none is open, or nobody wants the request.
    opener: int | None = None
    for batch in batches:
        header = parse_header(batch)
        cuts = [header.base_offset, *audit.ends_within(header.base_offset, header.end_offset, header.epoch)]
        before, first = state, len(found)
        state = state.replay_batch(batch)
        is_same = state.begin_offset == before.begin_offset
        if opener is not None and not is_same:
            # What is written in several batches is a transaction, and nothing has changed before its end.
            after = next(one for one in _within(before, batch, cuts[1:]) if one.begin_offset != before.begin_offset)
            found[opener] = found[opener]._replace(after=after.stable)
        for base, end in zip(cuts, [*cuts[1:], header.end_offset], strict=True):
            line = None if header.is_control else audit.line_at(base, header.epoch)
            if header.is_control or (line is not None and not is_wanted(line)) or (found and found[-1].line == line):
                continue
            images = before.replay_batch(batch, below=base) if base > header.base_offset else before
            after = before.replay_batch(batch, below=end) if end < header.end_offset else state
            if line is not None:
                found.append(WrittenRequest(line, header.timestamp, images.stable, after.stable))
            elif any(one is not other for one, other in zip(images.head[1:], after.head[1:], strict=True)):
                unknown.append(base)
        if not is_same:
            begun_by = None if state.begin_offset is None else audit.line_at(state.begin_offset, header.epoch)
            opener = next((place for place in range(first, len(found)) if found[place].line == begun_by), None)
    return WrittenLog(found, state.stable, unknown)


def _within(state: ReplayState, batch: bytes, cuts: Iterable[int]) -> Iterator[ReplayState]:
    """The states at offsets inside a batch that is replayed onto a state, and at its end."""
    for below in (*cuts, None):
        yield state.replay_batch(batch, below=below)
