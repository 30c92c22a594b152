"""Every version of every partition beside the one before it: what that change took away, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.causes import CAUSES, NONE, BrokerTimeline
from quorate.snapshots.incidents.serial.reassignments import has_arrived, is_open
from quorate.snapshots.incidents.serial.versions import PartitionHistory, PartitionVersion


@dataclass(slots=True)
class PartitionChange:
    """A version, and what it changed of the one before; a partition's first one changed nothing."""

    version: PartitionVersion
    #: Whether brokers left or joined the ISR, and the first that joined.
    shrank: bool
    grew: bool
    gained: int | None
    #: The first broker that left the ELR.
    dropped: int | None
    #: Led by another one, or nobody, from now on.
    is_moved: bool
    #: The broker that lost leadership or ISR membership.
    subject: int | None
    #: One of ``partitions.changes.NAMES``, and the offset of the broker's event that is the cause.
    cause: str
    cause_offset: int | None = None
    #: The loss may go back to an event of the broker.
    may_be_broker: bool = False

    @property
    def broker(self) -> int | None:
        """The broker that it is about."""
        return self.gained if self.subject is None else self.subject


def changes_of(
    partitions: Sequence[PartitionHistory], cluster_id: str, timeline: BrokerTimeline, within_us: int
) -> list[list[PartitionChange]]:
    """The changes of each partition, its first version among them.

    Args:
        timeline: what happened to brokers.
        within_us: how near a broker's event must be to be a loss's cause, whatever its state was.
    """
    found = [_changes(history) for history in partitions]
    _trace_to_brokers(
        [one for changes in found for one in changes if one.may_be_broker], cluster_id, timeline, within_us
    )
    return found


def _changes(history: PartitionHistory) -> list[PartitionChange]:
    first = history.versions[0]
    begun = kinds.BASE if history.is_base else kinds.CREATED
    found = [PartitionChange(first, False, False, None, None, False, None, begun)]
    before = first
    for version in history.versions[1:]:
        found.append(_change(before, version))
        before = version
    return found


def _change(before: PartitionVersion, now: PartitionVersion) -> PartitionChange:
    lost, gained = _first_missing(before.isr, now.isr), _first_missing(now.isr, before.isr)
    dropped = _first_missing(before.elr, now.elr)
    is_moved = now.leader != before.leader
    subject = before.leader if is_moved and before.leader >= 0 else lost
    # The last member of an ISR stays in it as it goes down, where there is no ELR: then nobody leads.
    went = subject is not None and (subject not in now.isr or now.leader < 0)
    cause = _own_cause(before, now, lost, gained, dropped)
    return PartitionChange(
        version=now,
        shrank=lost is not None,
        grew=gained is not None,
        gained=gained,
        dropped=dropped,
        is_moved=is_moved,
        subject=subject,
        cause=cause,
        may_be_broker=went and now.replicas == before.replicas and cause not in kinds.RISKY,
    )


def _first_missing(some: Iterable[int], others: Sequence[int]) -> int | None:
    """The first of some that is not among others."""
    return next((one for one in some if one not in others), None)


def _own_cause(
    before: PartitionVersion, now: PartitionVersion, lost: int | None, gained: int | None, dropped: int | None
) -> str:
    """The cause of a change by itself: of the first rule that holds."""
    was_led, is_moved, is_led = before.leader >= 0, now.leader != before.leader, now.leader >= 0
    # A reassignment that completes admits a replica and lets it lead in one record, for the leader that it takes away.
    outside = is_moved and is_led and not (was_led and _completes(before, now))
    outside = outside and now.leader not in before.isr and now.leader not in before.elr
    rules = (
        (outside and now.leader in before.last_known_elr, kinds.LAST_KNOWN),
        (outside, kinds.UNCLEAN),
        (now.replicas != before.replicas or now.adding != before.adding, kinds.REASSIGNMENT),
        (was_led and is_moved and is_led and now.replicas[:1] == (now.leader,), kinds.PREFERRED),
        (is_moved, kinds.ELECTED),
        (lost is not None, kinds.LAGGED),
        (gained is not None, kinds.CAUGHT_UP),
        (now.leader_epoch != before.leader_epoch, kinds.ELECTED),
        (dropped is not None, kinds.UNCLEAN_STOP),
    )
    return next((name for holds, name in rules if holds), kinds.ASSIGNED_DIRECTORIES)


def _completes(before: PartitionVersion, now: PartitionVersion) -> bool:
    return is_open(before) and not is_open(now) and has_arrived(before, now)


def _trace_to_brokers(
    losses: Sequence[PartitionChange], cluster_id: str, timeline: BrokerTimeline, within_us: int
) -> None:
    """Set the causes of the losses that an event of the broker lies behind."""
    columns = [(one.subject, one.version.offset, one.version.time_us) for one in losses]
    brokers, offsets, times = np.array(columns, np.int64).reshape(-1, 3).T
    causes, events = timeline.losses([cluster_id] * len(losses), brokers, offsets, times, within_us)
    for change, cause, offset in zip(losses, causes.tolist(), events.tolist(), strict=True):
        if cause != NONE:
            change.cause, change.cause_offset = CAUSES[cause], offset
