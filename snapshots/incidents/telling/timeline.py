"""The events of a log in the order of time: begins and ends. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from quorate.snapshots.incidents import brokers, kinds
from quorate.snapshots.incidents.brokers import BrokerEvent
from quorate.snapshots.incidents.failovers import Failover
from quorate.snapshots.incidents.findings import IncidentFindings, Row, at
from quorate.snapshots.incidents.serial.runs import ConditionRun, episodes, grouped_runs
from quorate.snapshots.incidents.serial.search import SerialFindings
from quorate.snapshots.incidents.telling.incident import at_most, counted, in_words, lasting, or_unknown
from quorate.snapshots.incidents.telling.story import because, incidents
from quorate.snapshots.incidents.thresholds import Thresholds

#: Incidents that are told where they begin, in their own words: all others are told as what they consist of.
_IN_OWN_WORDS: Final = (kinds.UNCLEAN, kinds.LAST_KNOWN, "mass_change", "isr_flapping")
_UNDER_MIN_ISR: Final = "{} below min.insync.replicas", "{} no longer below min.insync.replicas"
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


def timeline(found: SerialFindings, thresholds: Thresholds, cut: int = 0) -> list[TimelineEvent]:
    """The events, by offset.

    Args:
        cut: what began before this offset is not told together with what began behind it.
    """
    findings, gap = found.findings, thresholds.mass_gap
    told = [
        *(_broker_event(event, findings) for event in findings.events),
        *map(_failover, findings.failovers),
        *(
            event
            for rows in run_rows(found, found.leaderless, gap, cut)
            for event in _of_runs(rows, "offline", "{} without a leader", "{} led again")
        ),
        *(
            event
            for rows in run_rows(found, found.under_min_isr, gap, cut)
            for event in _of_runs(rows, "under_min_isr", *_UNDER_MIN_ISR)
        ),
        *_of_reassignments(found.reassignments, gap, cut),
        *_in_own_words(findings, thresholds),
    ]
    return sorted(told, key=lambda event: (event.offset, event.time, event.kind))


def _broker_event(event: BrokerEvent, findings: IncidentFindings) -> TimelineEvent:
    rows = [
        row
        for row in findings.effects
        if (row["broker"], row["cause"], row["cause_offset"]) == (event.broker_id, event.kind, event.offset)
    ]
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
    new, old = or_unknown(change.new_leader), or_unknown(change.old_leader)
    writes = "" if change.failover_ms is None else f", its first write after {in_words(change.failover_ms)}"
    text = (
        f"controller {new} elected in epoch {change.epoch}, {in_words(change.election_ms)} after the last record of "
        f"controller {old}{writes}"
    )
    when = at(change.elected_us)
    return TimelineEvent(change.elected_offset, when, "controller_elected", (), 0, change.failover_ms, text)


def run_rows(
    found: SerialFindings, runs: Iterable[ConditionRun], gap: timedelta, cut: int = 0
) -> Iterator[Sequence[Row]]:
    """Of runs with one cause that began shortly after each other the rows, one for each way in which they ended."""
    if runs:
        cluster_id = found.findings.spans[0].cluster_id
        for mine in episodes(runs, gap, cut):
            yield grouped_runs(mine, cluster_id, found.end_us)


def _of_runs(rows: Sequence[Row], kind: str, begun: str, ended: str) -> Iterator[TimelineEvent]:
    """Of what began together one begin; and one end for each way in which it ended."""
    first = min(rows, key=lambda row: row["from_offset"])
    count = sum(row["partitions"] for row in rows)
    still = sum(row["partitions"] for row in rows if row["ended_by"] == kinds.OPEN)
    text = f"{begun.format(counted(count, 'partition'))} ({first['first_partition']}...): {because(first)}"
    text += f"; {'it lasts' if still == count else f'for {still:,} it lasts'}" if still else ""
    yield TimelineEvent(first["from_offset"], first["from_time"], f"{kind}_begins", _brokers(first), count, None, text)
    for row in rows:
        if row["ended_by"] != kinds.OPEN:
            partitions, longest = counted(row["partitions"], "partition"), at_most(row["longest_ms"])
            text = f"{ended.format(partitions)}, after {longest}: {row['ended_by'].replace('_', ' ')}"
            end = (row["to_offset"], row["to_time"], f"{kind}_ends", _brokers(row), row["partitions"])
            yield TimelineEvent(*end, row["longest_ms"], text)


def _brokers(row: Row) -> tuple[int, ...]:
    return () if row["broker"] is None else (row["broker"],)


def _of_reassignments(rows: Sequence[Row], gap: timedelta, cut: int) -> Iterator[TimelineEvent]:
    """Those that began, or ended in one way, shortly after each other are told together."""
    lasting_ones = [row for row in rows if row["from_offset"] != row["to_offset"]]
    sides = (
        [row for row in lasting_ones if row["from_offset"] < cut],
        [row for row in lasting_ones if row["from_offset"] >= cut],
    )
    for mine in (group for side in sides for group in together(side, "from_time", gap)):
        yield _reassigned(min(mine, key=lambda row: row["from_offset"]), "from", mine, "begun")
    for outcome in sorted({row["outcome"] for row in rows} - {kinds.OPEN}):
        for mine in together((row for row in rows if row["outcome"] == outcome), "to_time", gap):
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
    for one in incidents(findings, thresholds):
        if one.kind in _IN_OWN_WORDS:
            yield TimelineEvent(one.from_offset, one.begin, one.kind, one.brokers, one.partitions, None, one.text)
