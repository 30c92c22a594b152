"""From when to when something was true of a partition, and such runs by what began and ended them. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.findings import Row, at, at_or_none
from quorate.snapshots.incidents.min_isr import MinIsrSteps
from quorate.snapshots.incidents.serial.changes import PartitionChange
from quorate.snapshots.incidents.serial.versions import PartitionHistory, PartitionVersion


class RunMoment(NamedTuple):
    """A point at which a run may begin or end: a change, or another value that counts for it."""

    offset: int
    time_us: int
    cause: str
    subject: int | None
    cause_offset: int | None
    holds: bool


class ConditionRun(NamedTuple):
    """A run of moments in which something holds; times in microseconds since 1970, None where it lasts."""

    partition: PartitionHistory
    begin: RunMoment
    to_offset: int | None
    to_us: int | None
    ended_by: str


def runs_of(partition: PartitionHistory, moments: Sequence[RunMoment]) -> Iterator[ConditionRun]:
    """The runs in the moments of one partition."""
    begin: RunMoment | None = None
    for moment in moments:
        if begin is None and moment.holds:
            begin = moment
        elif begin is not None and not moment.holds:
            yield ConditionRun(partition, begin, moment.offset, moment.time_us, moment.cause)
            begin = None
    if begin is not None and partition.gone is not None:
        yield ConditionRun(partition, begin, *partition.gone, kinds.TOPIC_REMOVED)
    elif begin is not None:
        yield ConditionRun(partition, begin, None, None, kinds.OPEN)


def moments_in_which(changes: Iterable[PartitionChange], holds: Callable[[PartitionVersion], bool]) -> list[RunMoment]:
    """The changes themselves."""
    return [
        RunMoment(
            change.version.offset,
            change.version.time_us,
            change.cause,
            change.subject,
            change.cause_offset,
            holds(change.version),
        )
        for change in changes
    ]


def is_leaderless(version: PartitionVersion) -> bool:
    """No broker leads the partition."""
    return version.leader < 0


def is_under_replicated(version: PartitionVersion) -> bool:
    """Fewer in the ISR than replicas, those not counted that a reassignment is still adding (as Kafka counts)."""
    return len(version.isr) < sum(replica not in version.adding for replica in version.replicas)


def moments_of_min_isr(
    partition: PartitionHistory, changes: Sequence[PartitionChange], cluster_id: str, steps: MinIsrSteps
) -> list[RunMoment]:
    """Each change, and every other value of min.insync.replicas by which it became other while that change held.

    As in Kafka a topic of fewer replicas than that needs them all.
    """
    values = steps.of(cluster_id, partition.topic)
    begins = [step.from_offset for step in values]
    gone = None if partition.gone is None else partition.gone[0]
    ends = [*(change.version.offset for change in changes[1:]), gone]
    found: list[RunMoment] = []
    for change, end in zip(changes, ends, strict=True):
        version = change.version
        # The first holds still, or begins behind.
        for place in range(max(bisect_right(begins, version.offset) - 1, 0), len(values)):
            step = values[place]
            # Of two changes at one offset the first holds never.
            if end is not None and step.from_offset >= end:
                break
            holds = len(version.isr) < min(step.value, len(version.replicas))
            if step.from_offset > version.offset:
                if found and found[-1].holds == holds:
                    continue
                found.append(RunMoment(step.from_offset, step.from_us, kinds.MIN_ISR_CHANGED, None, None, holds))
            else:
                own = change.cause, change.subject, change.cause_offset
                found.append(RunMoment(version.offset, version.time_us, *own, holds))
    return found


def grouped_runs(runs: Iterable[ConditionRun], cluster_id: str, end_us: int) -> list[Row]:
    """Runs by what began and what ended them, with the time they add up to, as ``partitions.counts.grouped_runs``.

    Args:
        end_us: until when those count that last still, in microseconds since 1970.
    """
    groups: dict[tuple[object, ...], list[ConditionRun]] = {}
    for run in runs:
        begin = run.begin
        groups.setdefault((begin.cause, begin.subject, begin.cause_offset, run.ended_by), []).append(run)
    rows = [_group(cluster_id, mine, end_us) for mine in groups.values()]
    return sorted(rows, key=_place)


def episodes(runs: Iterable[ConditionRun], gap: timedelta) -> Iterator[list[ConditionRun]]:
    """The runs of each cause, in groups of those that began within the gap of each other, by offset."""
    causes: dict[tuple[object, ...], list[ConditionRun]] = {}
    for run in runs:
        causes.setdefault((run.begin.cause, run.begin.subject, run.begin.cause_offset), []).append(run)
    gap_us = gap // timedelta(microseconds=1)
    for of_cause in causes.values():
        mine: list[ConditionRun] = []
        for run in sorted(of_cause, key=lambda run: run.begin.offset):
            if mine and abs(run.begin.time_us - mine[-1].begin.time_us) > gap_us:
                yield mine
                mine = []
            mine.append(run)
        yield mine


def _place(row: Row) -> list[tuple[bool, Any]]:
    """By offset and then by what they are grouped by; what there is not comes last."""
    names = ("from_offset", "cause", "broker", "cause_offset", "ended_by")
    return [(row[name] is None, 0 if row[name] is None else row[name]) for name in names]


def _group(cluster_id: str, mine: Sequence[ConditionRun], end_us: int) -> Row:
    begin, ended_by = mine[0].begin, mine[0].ended_by
    lasted = [(end_us if run.to_us is None else run.to_us) // 1000 - run.begin.time_us // 1000 for run in mine]
    first = min(mine, key=lambda run: (run.begin.offset, run.partition.name))
    return {
        "cluster_id": cluster_id,
        "cause": begin.cause,
        "broker": begin.subject,
        "cause_offset": begin.cause_offset,
        "ended_by": ended_by,
        "partitions": len(mine),
        "from_offset": first.begin.offset,
        "from_time": at(min(run.begin.time_us for run in mine)),
        "to_offset": max((run.to_offset for run in mine if run.to_offset is not None), default=None),
        "to_time": at_or_none(max((run.to_us for run in mine if run.to_us is not None), default=None)),
        "total_ms": sum(lasted),
        "longest_ms": max(lasted),
        "first_partition": first.partition.name,
    }
