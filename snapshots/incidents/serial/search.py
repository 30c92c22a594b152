"""All findings in one log: those of `merging`, of versions that one process holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from quorate.snapshots.incidents.brokers import BrokerVersion, events, incarnations, outages
from quorate.snapshots.incidents.causes import BrokerTimeline
from quorate.snapshots.incidents.failovers import Epoch, failovers
from quorate.snapshots.incidents.findings import IncidentFindings, Row, at
from quorate.snapshots.incidents.giving_up import Look, looked_at, nobody_gives_up
from quorate.snapshots.incidents.kinds import OPEN
from quorate.snapshots.incidents.min_isr import ConfigSpan, min_isr_steps
from quorate.snapshots.incidents.serial import counts
from quorate.snapshots.incidents.serial.changes import PartitionChange, changes_of
from quorate.snapshots.incidents.serial.elections import groups_of, risky_elections
from quorate.snapshots.incidents.serial.flapping import flapping, grouped_flapping
from quorate.snapshots.incidents.serial.reassignments import reassignments
from quorate.snapshots.incidents.serial.runs import (
    ConditionRun,
    grouped_runs,
    is_leaderless,
    is_under_replicated,
    moments_in_which,
    moments_of_min_isr,
    runs_of,
)
from quorate.snapshots.incidents.serial.versions import NONE_UNTOLD, PartitionHistory, UntoldPartitions
from quorate.snapshots.incidents.thresholds import INSTANT_SHARE, ROWS_MAX, Thresholds

#: Longer than anything lasts.
_FOREVER: Final = timedelta(days=1_000_000)


@dataclass(slots=True)
class LogVersions:
    """Everything that one log tells about outages."""

    cluster_id: str
    partitions: list[PartitionHistory] = field(default_factory=list)
    brokers: list[BrokerVersion] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    #: Versions of min.insync.replicas, and the topics in which unclean elections were allowed at some time; the empty
    #: name is the cluster's default.
    min_isr: list[ConfigSpan] = field(default_factory=list)
    unclean_allowed: set[str] = field(default_factory=set)
    #: Partitions of which there is no more to tell than that they are there.
    untold: UntoldPartitions = NONE_UNTOLD
    #: Of those some that were not well all the same: more than were looked at.
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SerialFindings:
    """The findings, and what of single partitions they do not hold."""

    findings: IncidentFindings
    #: Every one.
    reassignments: list[Row] = field(default_factory=list)
    #: The runs of which the findings' rows of the same name are made.
    leaderless: list[ConditionRun] = field(default_factory=list)
    under_min_isr: list[ConditionRun] = field(default_factory=list)
    #: Until when those that last were counted, in microseconds since 1970.
    end_us: int = 0


def search(
    log: LogVersions, thresholds: Thresholds, end_us: int | None = None, check: Look = nobody_gives_up
) -> SerialFindings:
    """The findings of one log.

    Args:
        end_us: until when the log was read, in microseconds since 1970: what lasts still counts to then; to the last
            change of a partition where that is later, or where None is given.

    Raises:
        What ``check`` raises, which is called again and again.
    """
    happened = events(log.brokers)
    found = IncidentFindings([], happened, incarnations(log.brokers), outages(happened), failovers(log.epochs))
    found.unclean_allowed = frozenset((log.cluster_id, topic) for topic in log.unclean_allowed)
    span = counts.span_of(log.partitions, log.untold, log.cluster_id)
    if span is None:
        return SerialFindings(found)
    if end_us is not None:
        span = replace(span, end=max(span.end, at(end_us)))
    found.spans = [span]
    within_us = thresholds.same_event // timedelta(microseconds=1)
    changes = changes_of(log.partitions, log.cluster_id, BrokerTimeline(happened), within_us)
    _count(found, log, changes, thresholds, check)
    # To the millisecond: times in the log have no more.
    runs_end_us = int(span.end.timestamp() * 1000) * 1000
    leaderless, under_min_isr = _find_runs(found, log, changes, thresholds, runs_end_us, check)
    moved = [row for one in log.partitions for row in reassignments(one, log.cluster_id)]
    found.reassignment_outcomes = counts.outcomes(moved, log.cluster_id)
    for row in moved:
        row["lasted"] = (row["to_time"] or span.end) - row["from_time"]
    found.reassignments = _slow(moved, thresholds.slow_reassignment)
    return SerialFindings(found, moved, leaderless, under_min_isr, runs_end_us)


def _count(
    found: IncidentFindings,
    log: LogVersions,
    changes: Sequence[Sequence[PartitionChange]],
    thresholds: Thresholds,
    check: Look,
) -> None:
    every = [change for mine in changes for change in mine]
    found.effects = counts.effects(every, log.cluster_id)
    found.unclean_stops = counts.unclean_stops(every, log.cluster_id)
    at_least = max(1, thresholds.mass_partitions // INSTANT_SHARE)
    found.instants = counts.instants(log.partitions, log.untold, every, log.cluster_id, at_least)
    pairs = list(zip(log.partitions, changes, strict=True))
    elections = (row for one, mine in pairs for row in risky_elections(one, mine, log.cluster_id))
    found.elections = groups_of(list(looked_at(elections, check)))
    flapped = (flapping(one, mine, thresholds.flaps, thresholds.flap_window) for one, mine in pairs)
    found.flapping = grouped_flapping((one for one in flapped if one is not None), log.cluster_id)


def _find_runs(
    found: IncidentFindings,
    log: LogVersions,
    changes: Sequence[Sequence[PartitionChange]],
    thresholds: Thresholds,
    end_us: int,
    check: Look,
) -> tuple[list[ConditionRun], list[ConditionRun]]:
    """The rows of runs; gives those without a leader and those below min.insync.replicas."""
    pairs = list(zip(log.partitions, changes, strict=True))
    steps = min_isr_steps(log.min_isr, thresholds.min_isr)
    leaderless = [run for one, mine in pairs for run in runs_of(one, moments_in_which(mine, is_leaderless))]
    short = (run for one, mine in pairs for run in runs_of(one, moments_in_which(mine, is_under_replicated)))
    under_min_isr = [
        run
        for one, mine in looked_at(pairs, check)
        for run in runs_of(one, moments_of_min_isr(one, mine, log.cluster_id, steps))
    ]
    found.leaderless = grouped_runs(leaderless, log.cluster_id, end_us)
    found.under_replicated = grouped_runs(short, log.cluster_id, end_us)
    found.under_min_isr = grouped_runs(under_min_isr, log.cluster_id, end_us)
    return leaderless, under_min_isr


def _slow(moved: Sequence[Row], at_least: timedelta) -> list[Row]:
    """Those that are open, and those that took longer, the longest first, up to a limit."""
    slow = [row for row in moved if row["outcome"] == OPEN or row["lasted"] > at_least]
    return sorted(slow, key=_by_length)[:ROWS_MAX]


def _by_length(row: Row) -> tuple[timedelta, int, str, int]:
    took = _FOREVER if row["outcome"] == OPEN else row["lasted"]
    return -took, row["from_offset"], row["topic"], row["partition"]
