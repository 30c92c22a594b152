"""The newest steps of a history that are asked for, and the requests that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.batches.batch import BatchHeader, parse_header
from quorate.metadata_log.directory.epoch_leader import leader_in_files
from quorate.scripts.cli.logs.history_places import Log
from quorate.scripts.cli.logs.time_spans import TimeSpan
from quorate.snapshots.checkpoints.stretches import LogStretch
from quorate.snapshots.difference.history import AuditLookup, HistoryStep, Subject, history
from quorate.snapshots.replay.replay_state import ReplayState


class Wanted(NamedTuple):
    """The part of a history that is asked for."""

    subject: Subject | None
    span: TimeSpan
    #: Of any of these principals; empty: whoever asked.
    principals: frozenset[str]
    #: Changes in these parts of the state; empty: in all.
    parts: frozenset[str]
    #: Each change at its own record; otherwise the changes of a request are one.
    by_record: bool

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves out changes of its subject."""
        return bool(self.principals or self.parts) or self.span != TimeSpan()

    def steps(self, stretch: LogStretch, audit: AuditLookup, unknown: list[HistoryStep]) -> Iterator[HistoryStep]:
        """Those of a stretch that are asked for, in their order.

        Args:
            unknown: gets those that are passed over as nobody knows who asked for them, without their changes.
        """
        from quorate.controller.configs.resources import is_sensitive

        told = history(*stretch, audit, is_sensitive, self.subject, self.span.holds, by_record=self.by_record)
        for step in told:
            changes = tuple(one for one in step.changes if not self.parts or one[0] in self.parts)
            if changes and self._holds(step):
                if self._asked(step.line):
                    yield replace(step, changes=changes)
                elif step.line is None:
                    unknown.append(replace(step, changes=()))

    def _holds(self, step: HistoryStep) -> bool:
        return any(map(self.span.holds_offset, (step.base_offset, step.end_offset - 1)))

    def _asked(self, line: AuditLine | None) -> bool:
        if not self.principals:
            return True
        known = () if line is None else filter(None, (line.principal, line.proxy))
        return any(who in self.principals or who.partition(":")[2] in self.principals for who in known)


class NewestRequests(NamedTuple):
    """The newest requests, each with its steps; oldest first."""

    requests: list[list[HistoryStep]]
    #: The earliest state that is known, where all of the log was gone through for them; None: so far it was not needed.
    begin: ReplayState | None
    #: There are others before them.
    has_more: bool
    #: The last batch of the log; None: it has none.
    end: BatchHeader | None
    #: Steps that were passed over as nobody knows who asked for them, without their changes.
    unknown: list[HistoryStep]


def newest(log: Log, audit: AuditLookup, wanted: Wanted, limit: int) -> NewestRequests:
    """The newest requests, going back through the log only as far as it takes; ``limit`` at most.

    Where each step stands for itself (``by_record``) each is a request of its own.
    """
    found: list[list[HistoryStep]] = []
    begin: ReplayState | None = None
    last: list[bytes] = []
    unknown: list[HistoryStep] = []
    for stretch in log.stretches:
        is_newest = begin is None
        read = stretch._replace(batches=_noted(stretch.batches, last)) if is_newest else stretch
        steps = wanted.steps(read, audit, unknown)
        found[:0] = [[step] for step in steps] if wanted.by_record else list(_requests(steps))
        begin = stretch.start
        if len(found) > limit or wanted.span.begins_behind(begin):
            begin = None
            break
    end = parse_header(last[0]) if last else None
    *requests, unknown = _with_leaders([*found[-limit:], unknown], log)
    return NewestRequests(requests, begin, len(found) > limit, end, unknown)


def _noted(batches: Iterable[bytes], last: list[bytes]) -> Iterator[bytes]:
    """The same batches; the newest that was taken is noted."""
    for batch in batches:
        last[:] = [batch]
        yield batch


def _requests(steps: Iterable[HistoryStep]) -> Iterator[list[HistoryStep]]:
    """Steps that one event wrote; of steps of which nobody knows the event each by itself."""
    for _, group in groupby(steps, key=lambda step: step.line or step.base_offset):
        yield list(group)


def _with_leaders(requests: Sequence[list[HistoryStep]], log: Log) -> list[list[HistoryStep]]:
    """The same; who led the epochs that had begun before a stretch is known from the stretches before it, or files."""
    known = {step.epoch: step.decided_by for steps in requests for step in steps if step.decided_by is not None}
    asked: dict[int, int | None] = {}

    def leader(epoch: int) -> int | None:
        if epoch not in known and epoch not in asked:
            asked[epoch] = None if log.directory is None else leader_in_files(log.directory, epoch)
        return known.get(epoch, asked.get(epoch))

    return [
        [step if step.decided_by is not None else replace(step, decided_by=leader(step.epoch)) for step in steps]
        for steps in requests
    ]
