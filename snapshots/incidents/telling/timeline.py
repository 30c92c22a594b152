"""The events of a log in the order of time: begins and ends. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from quorate.snapshots.incidents import brokers, kinds
from quorate.snapshots.incidents.brokers import BrokerEvent
from quorate.snapshots.incidents.failovers import Failover
from quorate.snapshots.incidents.findings import IncidentFindings, Row, at
from quorate.snapshots.incidents.giving_up import Look, looked_at, nobody_gives_up
from quorate.snapshots.incidents.serial.runs import ConditionRun, episodes, grouped_runs
from quorate.snapshots.incidents.serial.search import SerialFindings
from quorate.snapshots.incidents.telling.incident import at_most, controller_named, counted, in_words, lasting
from quorate.snapshots.incidents.telling.story import because, mass_changes, without_an_end
from quorate.snapshots.incidents.thresholds import Thresholds

_OF_BROKERS: Final = {
    brokers.REGISTERED: "broker {} registered",
    brokers.RESTARTED: "broker {} registered as a new process, before the old one was fenced",
    brokers.UNFENCED: "broker {} unfenced: it may lead",
    brokers.FENCED: "broker {} fenced",
    brokers.SHUTDOWN: "broker {} shuts down in a controlled way",
    brokers.STOPPED: "broker {} fenced at the end of its shutdown",
    brokers.DIRECTORIES_LOST: "broker {} lost log directories",
    brokers.UNREGISTERED: "broker {} unregistered",
}


class _Condition(NamedTuple):
    """Of partitions, in words."""

    kind: str
    begun: str
    ended: str


_OFFLINE: Final = _Condition("offline", "{} without a leader", "{} led again")
_UNDER_MIN_ISR: Final = _Condition(
    "under_min_isr", "{} below min.insync.replicas", "{} no longer below min.insync.replicas"
)


class TimelineEvent(NamedTuple):
    """Something that began, ended, or had no length."""

    offset: int
    time: datetime
    #: A word that programs may compare.
    kind: str
    brokers: tuple[int, ...]
    #: How many it concerned; 0: it is not about partitions.
    partitions: int
    #: Of an end the time since the begin, of several partitions the longest; None: it is none.
    lasted_ms: int | None
    text: str


def timeline(
    found: SerialFindings, thresholds: Thresholds, since: int = 0, check: Look = nobody_gives_up
) -> list[TimelineEvent]:
    """The events from an offset on, by offset: of what began before it the ends.

    Raises:
        What ``check`` raises, which is called again and again.
    """
    gap = thresholds.mass_gap
    told = chain(
        _of_brokers(found.findings),
        map(_failover, found.findings.failovers),
        _of_runs(found, found.leaderless, gap, since, _OFFLINE),
        _of_runs(found, found.under_min_isr, gap, since, _UNDER_MIN_ISR),
        _of_reassignments(found.reassignments, gap, since),
        _in_own_words(found.findings, thresholds),
    )
    within = (event for event in looked_at(told, check) if event.offset >= since)
    return sorted(within, key=lambda event: (event.offset, event.time, event.kind))


def whole_from(found: SerialFindings, thresholds: Thresholds, offset: int) -> int:
    """The offset, or an earlier one, where nothing goes on that is told as one.

    Those are elections, changes of very many partitions, and what a broker's event explains that was written before it.
    """
    findings = found.findings
    told_as_one = [
        *((row["from_offset"], row["to_offset"]) for row in findings.elections),
        *((one.from_offset, one.to_offset or one.from_offset) for one in mass_changes(findings, thresholds)),
        *((row["from_offset"], row["cause_offset"]) for row in findings.effects),
    ]
    for begin, end in sorted(told_as_one, reverse=True):
        if begin < offset <= end:
            offset = begin
    return offset


def _of_brokers(findings: IncidentFindings) -> Iterator[TimelineEvent]:
    effects: defaultdict[tuple[int, str, int], list[Row]] = defaultdict(list)
    for row in findings.effects:
        effects[row["broker"], row["cause"], row["cause_offset"]].append(row)
    return (_broker_event(event, effects[event.broker_id, event.kind, event.offset]) for event in findings.events)


def _broker_event(event: BrokerEvent, rows: Sequence[Row]) -> TimelineEvent:
    partitions, moved, lost = (
        sum(row[name] for row in rows) for name in ("partitions", "leaders_moved", "leaders_lost")
    )
    text = _OF_BROKERS[event.kind].format(event.broker_id)
    if event.log_dirs:
        text += f" {', '.join(event.log_dirs)}"
    if partitions:
        text += f"; {counted(partitions, 'partition')} lost it, {moved:,} of them their leader, {lost:,} for no other"
    return TimelineEvent(event.offset, at(event.at_us), event.kind, (event.broker_id,), partitions, None, text)


def _failover(change: Failover) -> TimelineEvent:
    new, old = controller_named(change.new_leader), controller_named(change.old_leader)
    writes = "" if change.failover_ms is None else f", its first write after {in_words(change.failover_ms)}"
    text = (
        f"{new} elected in epoch {change.epoch}, {in_words(change.election_ms)} after the last record of {old}{writes}"
    )
    when = at(change.elected_us)
    return TimelineEvent(change.elected_offset, when, "controller_elected", (), 0, change.failover_ms, text)


def run_rows(found: SerialFindings, runs: Sequence[ConditionRun], gap: timedelta) -> Iterator[Sequence[Row]]:
    """Of runs with one cause that began shortly after each other the rows, one for each way in which they ended."""
    if runs:
        cluster_id = found.findings.spans[0].cluster_id
        for mine in episodes(runs, gap):
            yield grouped_runs(mine, cluster_id, found.end_us)


def _of_runs(
    found: SerialFindings, runs: Sequence[ConditionRun], gap: timedelta, since: int, words: _Condition
) -> Iterator[TimelineEvent]:
    """Of what began together one begin; and one end for each way in which it ended."""
    for rows in run_rows(found, [run for run in runs if run.begin.offset >= since], gap):
        yield _begin(rows, words)
    ended = [run for run in runs if run.to_offset is not None and run.to_offset >= since]
    yield from (_end(row, words) for rows in run_rows(found, ended, gap) for row in rows)


def _begin(rows: Sequence[Row], words: _Condition) -> TimelineEvent:
    first = min(rows, key=lambda row: row["from_offset"])
    count = sum(row["partitions"] for row in rows)
    still = sum(row["partitions"] for row in rows if row["ended_by"] == kinds.OPEN)
    text = f"{words.begun.format(counted(count, 'partition'))} ({first['first_partition']}...): {because(first)}"
    text += f"; {'it lasts' if still == count else f'for {still:,} it lasts'}" if still else ""
    kind = f"{words.kind}_begins"
    return TimelineEvent(first["from_offset"], first["from_time"], kind, _brokers(first), count, None, text)


def _end(row: Row, words: _Condition) -> TimelineEvent:
    partitions, longest = counted(row["partitions"], "partition"), at_most(row["longest_ms"])
    text = f"{words.ended.format(partitions)}, after {longest}: {row['ended_by'].replace('_', ' ')}"
    end = (row["to_offset"], row["to_time"], f"{words.kind}_ends", _brokers(row), row["partitions"])
    return TimelineEvent(*end, row["longest_ms"], text)


def _brokers(row: Row) -> tuple[int, ...]:
    return () if row["broker"] is None else (row["broker"],)


def _of_reassignments(rows: Sequence[Row], gap: timedelta, since: int) -> Iterator[TimelineEvent]:
    """Those that began, or ended in one way, shortly after each other are told together."""
    begun = [row for row in rows if row["from_offset"] != row["to_offset"] and row["from_offset"] >= since]
    ended = [row for row in rows if row["outcome"] != kinds.OPEN and row["to_offset"] >= since]
    for mine in together(begun, "from_time", gap):
        yield _reassigned(min(mine, key=lambda row: row["from_offset"]), "from", mine, "begun")
    for outcome in sorted({row["outcome"] for row in ended}):
        for mine in together((row for row in ended if row["outcome"] == outcome), "to_time", gap):
            longest = max(row["lasted"] for row in mine)
            words = f"{outcome.replace('_', ' ')}, the longest after {lasting(longest)}"
            last = max(mine, key=lambda row: row["to_offset"])
            yield _reassigned(last, "to", mine, words)._replace(lasted_ms=longest // timedelta(milliseconds=1))


def together(rows: Iterable[Row], time: str, gap: timedelta) -> Iterator[list[Row]]:
    """Rows by the times in one column, in groups of those that follow each other within the gap."""
    mine: list[Row] = []
    for row in sorted(rows, key=lambda row: (row[time], row["from_offset"])):
        if mine and row[time] - mine[-1][time] > gap:
            yield mine
            mine = []
        mine.append(row)
    if mine:
        yield mine


def _reassigned(edge: Row, side: str, mine: Sequence[Row], words: str) -> TimelineEvent:
    """The event in which some began or ended; ``edge``: the one that it is told at."""
    adding = sorted({broker for row in mine for broker in row["adding"]})
    others = ", ..." if len(mine) > 1 else ""
    text = f"reassignment of {counted(len(mine), 'partition')} {words} ({edge['topic']}-{edge['partition']}{others})"
    text += f"; to {', '.join(map(str, adding))}" if adding and side == "from" else ""
    kind = "reassignment_begins" if side == "from" else "reassignment_ends"
    return TimelineEvent(edge[f"{side}_offset"], edge[f"{side}_time"], kind, tuple(adding), len(mine), None, text)


def _in_own_words(findings: IncidentFindings, thresholds: Thresholds) -> Iterator[TimelineEvent]:
    for one in without_an_end(findings, thresholds):
        yield TimelineEvent(one.from_offset, one.begin, one.kind, one.brokers, one.partitions, None, one.text)
