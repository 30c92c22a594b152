"""The history of changes: a log told as differences with their times and records, of everything or of one thing.

Batches that change nothing of interest are passed over. One that does is cut at the ends of the events that wrote it,
as far as they are known, and where it is small record by record, so that a change stands at its own offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.batches.batch import BatchHeader, parse_header
from quorate.metadata_log.directory.epoch_leader import named_leader
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.hidden_values import IsSecret
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.difference.difference_entries import Entry
from quorate.snapshots.difference.image_difference import image_difference
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.joined_replay import JoinedReplay
from quorate.snapshots.replay.replay_state import ReplayState

#: Larger batches are cut at the ends of events only.
_SINGLE_RECORDS_MAX: Final = 64


#: Parts of the state, and entries of them that are not as before.
_Changes = tuple[tuple[str, Entry], ...]


class Subject(NamedTuple):
    """One thing whose history is wanted: parts of a state, and the names of entries in them."""

    #: Part -> the entry's name; with a star at its end all that begin so, and a number behind it.
    entries: dict[str, str]

    def holds(self, part: str, name: str) -> bool:
        """Whether an entry is about it."""
        wanted = self.entries.get(part)
        if wanted is None:
            return False
        if not wanted.endswith("*"):
            return name == wanted
        return name.startswith(wanted[:-1]) and name[len(wanted) - 1 :].isdigit()


def topic_subject(topic: str) -> Subject:
    """A topic, its configs, its labels and its partitions."""
    configs, labels = f"topic/{topic}", f"topic:{topic}"
    return Subject({"topics": topic, "configs": configs, "labels": labels, "partitions": f"{topic}-*"})


def broker_subject(broker_id: int) -> Subject:
    """A broker's registration, configs and labels."""
    return Subject({"brokers": str(broker_id), "configs": f"broker/{broker_id}", "labels": f"broker:{broker_id}"})


def config_subject(resource: str) -> Subject:
    """The configs of one resource."""
    return Subject({"configs": resource})


def label_subject(resource: str) -> Subject:
    """The labels of one resource, as ``record:routing``."""
    return Subject({"labels": resource})


def partition_subject(partition: str) -> Subject:
    """One partition, as ``orders-17``, and its labels."""
    return Subject({"partitions": partition, "labels": f"partition:{partition}"})


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """Changes that were made by the same records."""

    #: Offsets of these records; the end is exclusive.
    base_offset: int
    end_offset: int
    epoch: int
    #: Milliseconds since 1970.
    time_ms: int
    #: The controller that led the epoch, by the log; None where the log begins later.
    decided_by: int | None
    #: Which event decided it; None where that is not known.
    line: AuditLine | None
    changes: _Changes


class AuditLookup(Protocol):
    """The controllers' own account of who asked for which records."""

    def line_at(self, offset: int, epoch: int) -> AuditLine | None:
        """The event that wrote the record at an offset in an epoch; None where that is not known."""

    def ends_within(self, base_offset: int, end_offset: int, epoch: int) -> list[int]:
        """Offsets at which events begin or end inside a batch, ascending, as far as they are known."""


class Audit:
    """``AuditLookup``: the lines of all controllers that are given."""

    def __init__(self, lines: Iterable[AuditLine]) -> None:
        self._lines = sorted(set(lines), key=lambda line: (line.base_offset, line.epoch))
        self._bases = [line.base_offset for line in self._lines]

    def line_at(self, offset: int, epoch: int) -> AuditLine | None:
        """The event that wrote the record at an offset in an epoch."""
        place = bisect_right(self._bases, offset) - 1
        while place >= 0 and self._lines[place].end_offset > offset - _SPAN:
            line = self._lines[place]
            if line.epoch == epoch and line.base_offset <= offset < line.end_offset:
                return line
            place -= 1
        return None

    def ends_within(self, base_offset: int, end_offset: int, epoch: int) -> list[int]:
        """Offsets at which events begin or end inside a batch, ascending."""
        first = max(0, bisect_right(self._bases, base_offset) - 1)
        cuts: set[int] = set()
        for line in self._lines[first:]:
            if line.base_offset >= end_offset:
                break
            if line.epoch == epoch:
                cuts.update(at for at in (line.base_offset, line.end_offset) if base_offset < at < end_offset)
        return sorted(cuts)


#: Most records of one event: none that begins further back holds an offset.
_SPAN: Final = 100_000


def history(
    start: ReplayState,
    batches: Iterable[Buffer],
    audit: AuditLookup,
    is_secret: IsSecret,
    subject: Subject | None = None,
    is_wanted: Callable[[BatchHeader], bool] = lambda header: True,
    *,
    by_record: bool = True,
) -> Iterator[HistoryStep]:
    """The changes that batches make to a state, in their order.

    Args:
        start: what the first batch is replayed onto.
        audit: is asked about batches in their order, and only about those that change something.
        is_secret: as in ``image_difference``.
        subject: None = everything.
        is_wanted: others are replayed only.
        by_record: cut small batches record by record; otherwise events are not cut, which is sooner told.
    """
    for batch, header, decided_by, state, after in _replayed(start, batches, is_wanted):
        whole = _changes(state.stable, after.stable, is_secret, subject)
        if whole:
            cuts = _cuts(header, audit, by_record=by_record)
            uncut = [(header.base_offset, header.end_offset, whole)]
            for base, end, changes in _steps(state, batch, cuts, is_secret, subject) if cuts else uncut:
                line = audit.line_at(base, header.epoch)
                yield HistoryStep(base, end, header.epoch, header.timestamp, decided_by, line, changes)


class _ToldBatch(NamedTuple):
    """A batch that is wanted, who led its epoch, and the states before and after it."""

    batch: Buffer
    header: BatchHeader
    decided_by: int | None
    before: ReplayState
    after: ReplayState


def _replayed(
    start: ReplayState, batches: Iterable[Buffer], is_wanted: Callable[[BatchHeader], bool]
) -> Iterator[_ToldBatch]:
    # Keeping counts, of which nobody asks, takes a third of what a replay does.
    replay = JoinedReplay(start.uncounted())
    leader = _Leader()
    try:
        for batch in batches:
            header = parse_header(batch)
            leader = leader.after(header, batch)
            if is_wanted(header):
                before = replay.finish()
                after = before.replay_batch(batch)
                yield _ToldBatch(batch, header, leader.node_id, before, after)
                replay = JoinedReplay(after)
            else:
                replay.add(batch)
    except QuorateError:
        replay.finish()  # what is wrong with a batch before comes first
        raise
    replay.finish()


class _Leader(NamedTuple):
    """The leader of an epoch: the epoch's first record names it."""

    epoch: int = -1
    node_id: int | None = None

    def after(self, header: BatchHeader, batch: Buffer) -> _Leader:
        """The leader of the epoch of a batch that follows."""
        leader_id = named_leader(header, batch)
        if leader_id is not None:
            return _Leader(header.epoch, leader_id)
        return self if header.epoch == self.epoch else _Leader(header.epoch)


def _cuts(header: BatchHeader, audit: AuditLookup, *, by_record: bool) -> Sequence[int]:
    """Offsets inside a batch at which it is cut."""
    if by_record and header.record_count <= _SINGLE_RECORDS_MAX:
        return range(header.base_offset + 1, header.end_offset)
    return audit.ends_within(header.base_offset, header.end_offset, header.epoch)


def _steps(
    state: ReplayState,
    batch: Buffer,
    cuts: Sequence[int],
    is_secret: IsSecret,
    subject: Subject | None,
) -> Iterator[tuple[int, int, _Changes]]:
    """Offsets of the records that changed something, the end exclusive, and what they changed."""
    header = parse_header(batch)
    base, before = header.base_offset, state
    for end in (*cuts, header.end_offset):
        after = state.replay_batch(batch, below=end)
        changes = _changes(before.stable, after.stable, is_secret, subject)
        if changes:
            yield base, end, changes
        base, before = end, after


def _changes(old: MetadataImage, new: MetadataImage, is_secret: IsSecret, subject: Subject | None) -> _Changes:
    if all(one is other for one, other in zip(old[1:], new[1:], strict=True)):
        return ()
    return tuple(
        (part.part, entry)
        for part in image_difference(old, new, is_secret)
        if part and (subject is None or part.part in subject.entries)
        for entry in part.entries
        if subject is None or subject.holds(part.part, entry.name)
    )
