"""The incidents of a history, in order, each with its cause in one sentence. Pure."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from quorate.snapshots.incidents import brokers
from quorate.snapshots.incidents import kinds as names
from quorate.snapshots.incidents.brokers import BrokerEvent, Outage
from quorate.snapshots.incidents.failovers import Failover
from quorate.snapshots.incidents.findings import IncidentFindings, Row, at, at_or_none
from quorate.snapshots.incidents.mass import mass_events
from quorate.snapshots.incidents.telling.incident import Incident, at_most, counted, in_words, lasting, took_over
from quorate.snapshots.incidents.thresholds import Thresholds

#: Mass events that are no incident by themselves, or are told with the broker's outage that they belong to.
_TOLD_ELSEWHERE = brokers.LOSSES | {
    names.BASE,
    names.CREATED,
    names.ASSIGNED_DIRECTORIES,
    names.CAUGHT_UP,
    names.UNCLEAN,
    names.LAST_KNOWN,
    names.UNCLEAN_STOP,
}


#: The offsets of brokers' unfencings by cluster, broker and time.
_Returns = dict[tuple[str, int, datetime], int]


def incidents(found: IncidentFindings, thresholds: Thresholds) -> list[Incident]:
    """Every incident, by cluster and offset."""
    told = [
        *_broker_outages(found, thresholds),
        *_lost_directories(found),
        *map(_failover, found.failovers),
        *(_without_leader(row) for row in found.leaderless),
        *(_under_min(row) for row in found.under_min_isr),
        *(_reassignment(row, found) for row in found.reassignments),
        *without_an_end(found, thresholds),
    ]
    return sorted(told, key=lambda incident: (incident.cluster_id, incident.from_offset, incident.kind))


def without_an_end(found: IncidentFindings, thresholds: Thresholds) -> Iterator[Incident]:
    """Those that are told in these words wherever they are told: of them nothing begins and ends."""
    returns: _Returns = {}
    for event in found.events:
        if event.kind == brokers.UNFENCED:
            returns.setdefault((event.cluster_id, event.broker_id, at(event.at_us)), event.offset)
    yield from (_risky_election(row, found, returns) for row in found.elections)
    yield from (_flapping(row) for row in found.flapping)
    yield from mass_changes(found, thresholds)


def _broker_outages(found: IncidentFindings, thresholds: Thresholds) -> Iterator[Incident]:
    grown = [row for row in mass_events(found.instants, thresholds.mass_gap, 1) if row["cause"] == names.CAUGHT_UP]
    recoveries, unclean_stops = _by_broker(grown), _by_broker(found.unclean_stops)
    effects: defaultdict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in found.effects:
        effects[row["cluster_id"], row["broker"], row["cause_offset"]].append(row)
    begins: defaultdict[_Broker, list[int]] = defaultdict(list)
    for outage in found.outages:
        insort(begins[outage[:2]], outage.offset)
    for outage in found.outages:
        broker = outage[:2]
        causes = {offset for offset in (outage.offset, outage.fenced_offset) if offset is not None}
        losses = [row for offset in sorted(causes) for row in effects[*broker, offset]]
        unclean = sum(row["partitions"] for row in unclean_stops[broker] if _within(row, outage))
        yield _outage(outage, losses, unclean, _recovery(outage, recoveries[broker], begins[broker]))


#: Cluster and id.
_Broker = tuple[str, int]


def _by_broker(rows: Iterable[Row]) -> defaultdict[_Broker, list[Row]]:
    found: defaultdict[_Broker, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["cluster_id"], row["broker"]].append(row)
    return found


def _within(row: Row, outage: Outage) -> bool:
    is_before = outage.back_offset is not None and row["from_offset"] >= outage.back_offset
    return row["from_offset"] >= outage.offset and not is_before


def _recovery(outage: Outage, recoveries: Sequence[Row], begins: Sequence[int]) -> Row | None:
    """The growth of ISRs that the broker's return set off: before anything else happened to it."""
    if outage.back_offset is None:
        return None
    place = bisect_right(begins, outage.back_offset)
    end = begins[place] if place < len(begins) else None
    mine = (row for row in recoveries if row["from_offset"] > outage.back_offset)
    return next((row for row in mine if end is None or row["from_offset"] < end), None)


def _outage(outage: Outage, losses: list[Row], unclean: int, recovery: Row | None) -> Incident:
    kind = _outage_kind(outage)
    counts = {name: sum(row[name] for row in losses) for name in ("partitions", "leaders_moved", "leaders_lost")}
    first = min([outage.offset, *(row["from_offset"] for row in losses)])
    text = _OUTAGE_TEXTS[kind].format(outage.broker_id)
    text += "" if outage.fenced_offset is None else f", fenced at offset {outage.fenced_offset}"
    if not counts["partitions"]:
        text += "; no partition lost it"
    else:
        text += (
            f"; {counted(counts['partitions'], 'partition')} lost it, {counts['leaders_moved']:,} of them their leader,"
            f" {counts['leaders_lost']:,} of those for no other"
        )
    if kind == "broker_crash" and not counts["leaders_moved"] and not unclean:
        text += "; it led nothing, and of such a broker a clean stop leaves the same records"
    if outage.unregistered:
        text += "; it was unregistered"
    elif outage.back_us is not None:
        text += f"; it leads again after {lasting(at(outage.back_us) - at(outage.at_us))}"
    else:
        text += "; it is down still"
    if unclean:
        text += f"; it had not stopped cleanly: {counted(unclean, 'partition')} took it out of the ELR as it registered"
    if recovery is not None:
        text += f"; ISRs grew until {lasting(recovery['to_time'] - at(outage.at_us))} after the loss"
    return Incident(
        outage.cluster_id,
        kind,
        first,
        at(outage.at_us),
        outage.back_offset,
        at_or_none(outage.back_us),
        outage.back_us is None and not outage.unregistered,
        (outage.broker_id,),
        counts["partitions"],
        outage.kind,
        outage.offset,
        text,
        dict(
            counts,
            fenced_offset=outage.fenced_offset,
            registrations=outage.registrations,
            dropped_from_elr=unclean,
            isr_recovered_offset=None if recovery is None else recovery["to_offset"],
        ),
    )


_OUTAGE_TEXTS = {
    "controlled_shutdown": "broker {} shut down in a controlled way",
    "broker_crash": "broker {} crashed: no controlled shutdown went before",
    "broker_session_lost": "broker {} did not heartbeat for a while, and came back as the same process",
    "broker_restarted": "broker {} was replaced by a new process before it was fenced",
}


def _outage_kind(outage: Outage) -> str:
    if outage.kind == brokers.SHUTDOWN:
        return "controlled_shutdown"
    if outage.kind == brokers.RESTARTED:
        return "broker_restarted"
    return "broker_session_lost" if outage.back_us is not None and not outage.registrations else "broker_crash"


def _lost_directories(found: IncidentFindings) -> Iterator[Incident]:
    for event in found.events:
        if event.kind != brokers.DIRECTORIES_LOST:
            continue
        cause = (event.cluster_id, event.broker_id, event.offset)
        rows = [row for row in found.effects if (row["cluster_id"], row["broker"], row["cause_offset"]) == cause]
        yield _lost_directory(event, rows)


def _lost_directory(event: BrokerEvent, rows: list[Row]) -> Incident:
    partitions = sum(row["partitions"] for row in rows)
    moved = sum(row["leaders_moved"] for row in rows)
    directories = ", ".join(event.log_dirs)
    return Incident(
        event.cluster_id,
        "log_dirs_lost",
        min([event.offset, *(row["from_offset"] for row in rows)]),
        at(event.at_us),
        None,
        None,
        False,
        (event.broker_id,),
        partitions,
        brokers.DIRECTORIES_LOST,
        event.offset,
        f"broker {event.broker_id} lost log directory {directories}; {counted(partitions, 'partition')} lost the"
        f" replica, {moved:,} of them their leader",
        {"log_dirs": list(event.log_dirs), "leaders_moved": moved},
    )


def _failover(change: Failover) -> Incident:
    writes = (
        "and it has written nothing yet"
        if change.failover_ms is None
        else (f"its first data record was written after {lasting(timedelta(milliseconds=change.failover_ms))}")
    )
    return Incident(
        change.cluster_id,
        "controller_failover",
        change.elected_offset,
        at(change.last_us),
        change.writes_offset,
        at_or_none(change.writes_us),
        change.writes_us is None,
        (),
        0,
        "controller_elected",
        change.elected_offset,
        f"{took_over(change.new_leader, change.old_leader)} in epoch"
        f" {change.epoch}: it was elected {lasting(timedelta(milliseconds=change.election_ms))} after the old leader's"
        f" last record (offset {change.last_offset}), {writes}",
        {
            "epoch": change.epoch,
            "old_leader": change.old_leader,
            "new_leader": change.new_leader,
            "last_offset": change.last_offset,
            "election_ms": change.election_ms,
            "failover_ms": change.failover_ms,
        },
    )


def _run(row: Row, kind: str, what: str) -> Incident:
    is_open = row["ended_by"] == "open"
    longest = row["longest_ms"]
    ended = f"it lasts, since {in_words(longest)} at the history's end" if is_open else f"{at_most(longest)} each"
    text = f"{counted(row['partitions'], 'partition')} {what} ({row['first_partition']}...), {ended}: {because(row)}"
    if not is_open:
        text += f"; ended by {row['ended_by'].replace('_', ' ')}"
    return Incident(
        row["cluster_id"],
        kind,
        row["from_offset"],
        row["from_time"],
        row["to_offset"],
        row["to_time"],
        is_open,
        _brokers(row),
        row["partitions"],
        row["cause"],
        row["cause_offset"],
        text,
        {name: row[name] for name in ("ended_by", "total_ms", "longest_ms", "first_partition")},
    )


def _without_leader(row: Row) -> Incident:
    return _run(row, "leaderless", "without a leader")


def _under_min(row: Row) -> Incident:
    return _run(row, "under_min_isr", "with too few in the ISR for acks=all")


def because(row: Row) -> str:
    """The cause of a row in words."""
    cause = str(row["cause"]).replace("_", " ")
    if row["cause_offset"] is None:
        return cause
    return f"{cause}, broker {row['broker']}, offset {row['cause_offset']}"


def _risky_election(row: Row, found: IncidentFindings, returns: _Returns) -> Incident:
    trigger, offset = _trigger(row, found, returns)
    partitions = counted(row["partitions"], "partition")
    if row["kind"] == names.LAST_KNOWN:
        text = (
            f"{partitions} got the last known leader {row['leader']} back, as ISR and ELR were empty: what it had not"
            " flushed when it went down is lost"
        )
    else:
        ahead = ", ".join(f"{one['broker']} (in the ISR for {in_words(one['in_isr_ms'])})" for one in row["ahead"][:3])
        exposed = "a time that the history does not tell" if row["exposed_ms"] is None else in_words(row["exposed_ms"])
        text = (
            f"{partitions} elected {row['leader']}, which was not in the ISR: for {exposed} others could"
            f" acknowledge writes that it may lack; ahead of it: {ahead or 'nobody known'}"
        )
    return Incident(
        row["cluster_id"],
        row["kind"],
        row["from_offset"],
        row["time"],
        row["to_offset"],
        None,
        False,
        (row["leader"],),
        row["partitions"],
        trigger,
        offset,
        f"{text}; {_TRIGGERS[trigger]}",
        {name: row[name] for name in ("exposed_ms", "ahead", "topics", "first_partition")},
    )


_TRIGGERS = {
    "broker_returned": "it came with the broker's return",
    "operator": "no topic allows it on its own: somebody asked for it",
    "operator_or_controller": "somebody asked for it, or the controller, which looks from time to time where it may",
}


def _trigger(row: Row, found: IncidentFindings, returns: _Returns) -> tuple[str, int | None]:
    returned = returns.get((row["cluster_id"], row["leader"], row["time"]))
    if returned is not None:
        return "broker_returned", returned
    if row["kind"] == names.LAST_KNOWN:
        return "operator_or_controller", None
    allowed = any((row["cluster_id"], topic) in found.unclean_allowed for topic in (*row["topics"], ""))
    return ("operator_or_controller" if allowed else "operator"), None


def _reassignment(row: Row, found: IncidentFindings) -> Incident:
    is_open = row["outcome"] == "open"
    down = sorted(
        {
            outage.broker_id
            for outage in found.outages
            if outage.cluster_id == row["cluster_id"] and outage.broker_id in row["adding"] and _overlaps(outage, row)
        }
    )
    text = f"{row['topic']}-{row['partition']}: reassignment adding {row['adding']}, removing {row['removing']} " + (
        f"is open since {lasting(row['lasted'])}" if is_open else f"took {lasting(row['lasted'])}, {row['outcome']}"
    )
    if down:
        text += "; " + " and ".join(f"broker {broker} was down meanwhile" for broker in down)
    elif is_open and row["waiting_for"]:
        text += f"; {row['waiting_for']} have not caught up"
    return Incident(
        row["cluster_id"],
        "reassignment_open" if is_open else "reassignment_slow",
        row["from_offset"],
        row["from_time"],
        row["to_offset"],
        row["to_time"],
        is_open,
        tuple(row["adding"]),
        1,
        "target_down" if down else "slow",
        None,
        text,
        {name: row[name] for name in ("topic", "partition", "adding", "removing", "waiting_for", "outcome")},
    )


def _overlaps(outage: Outage, row: Row) -> bool:
    begins_before = row["to_offset"] is None or outage.offset < row["to_offset"]
    return begins_before and (outage.back_offset is None or outage.back_offset > row["from_offset"])


def _flapping(row: Row) -> Incident:
    return Incident(
        row["cluster_id"],
        "isr_flapping",
        row["from_offset"],
        row["from_time"],
        None,
        row["to_time"],
        False,
        _brokers(row),
        row["partitions"],
        "follower_lagged",
        None,
        f"broker {row['broker']} came and went most often in the ISR of {counted(row['partitions'], 'partition')},"
        f" which shrank and grew again {row['flaps']:,} times, up to {row['most']} within the window"
        f" ({row['first_partition']})",
        {name: row[name] for name in ("flaps", "most", "first_partition")},
    )


def mass_changes(found: IncidentFindings, thresholds: Thresholds) -> Iterator[Incident]:
    """Of very many partitions, where nothing else that is told explains them."""
    by_cause = [dict(row, broker=None) for row in found.instants if row["cause"] not in _TOLD_ELSEWHERE]
    for row in mass_events(by_cause, thresholds.mass_gap, thresholds.mass_partitions):
        what = row["cause"].replace("_", " ")
        yield Incident(
            row["cluster_id"],
            "mass_change",
            row["from_offset"],
            row["time"],
            row["to_offset"],
            row["to_time"],
            False,
            (),
            row["partitions"],
            row["cause"],
            None,
            f"{what}: {counted(row['partitions'], 'partition')} changed at once",
            {name: row[name] for name in ("leaders_moved", "leaders_lost", "isr_shrunk", "isr_grown")},
        )


def _brokers(row: Row) -> tuple[int, ...]:
    return () if row["broker"] is None else (row["broker"],)
