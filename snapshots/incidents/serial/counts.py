"""Counts of the changes of all partitions, by instant and by broker's event. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.findings import HistorySpan, Row, at
from quorate.snapshots.incidents.serial.changes import PartitionChange
from quorate.snapshots.incidents.serial.versions import PartitionHistory, UntoldPartitions, UntoldRemoval

_SUMS = ("leaders_moved", "leaders_lost", "isr_shrunk", "isr_grown")
_Key = tuple[int, str, int | None, int | None]


def span_of(partitions: Sequence[PartitionHistory], untold: UntoldPartitions, cluster_id: str) -> HistorySpan | None:
    """First and last change, and how many partitions there ever were; None: there was none."""
    places = [(version.offset, version.time_us) for one in partitions for version in one.versions]
    places += [one.gone for one in partitions if one.gone is not None]
    places += [(untold.offset, untold.time_us)] if untold.partitions else []
    places += [(removal.offset, removal.time_us) for removal in untold.removals]
    if not places:
        return None
    offsets, times_us = zip(*places, strict=True)
    count = len(partitions) + untold.partitions
    return HistorySpan(cluster_id, min(offsets), max(offsets), at(min(times_us)), at(max(times_us)), count)


def effects(changes: Iterable[PartitionChange], cluster_id: str) -> list[Row]:
    """The losses by each broker's event."""
    groups: dict[tuple[str, int | None, int], list[PartitionChange]] = {}
    for change in changes:
        if change.cause_offset is not None:
            groups.setdefault((change.cause, change.subject, change.cause_offset), []).append(change)
    rows = []
    for (cause, broker, offset), mine in groups.items():
        times = [change.version.time_us for change in mine]
        key = {"cluster_id": cluster_id, "cause": cause, "broker": broker, "cause_offset": offset}
        rows.append({**key, "from_time": at(min(times)), "to_time": at(max(times)), **_counted(mine)})
    return sorted(rows, key=lambda row: (row["from_offset"], row["cause"], row["broker"], row["cause_offset"]))


def _counted(mine: Sequence[PartitionChange]) -> Row:
    offsets = [change.version.offset for change in mine]
    return {
        "from_offset": min(offsets),
        "to_offset": max(offsets),
        "partitions": len(mine),
        "leaders_moved": sum(change.is_moved for change in mine),
        "leaders_lost": sum(change.is_moved and change.version.leader < 0 for change in mine),
        "isr_shrunk": sum(change.shrank for change in mine),
        "isr_grown": sum(change.grew for change in mine),
    }


def instants(
    partitions: Iterable[PartitionHistory],
    untold: UntoldPartitions,
    changes: Iterable[PartitionChange],
    cluster_id: str,
    at_least: int,
) -> list[Row]:
    """Changes by time, cause and broker, and removals by time; of the times and causes that have at least so many.

    The time of a batch is that of all its records, so a batch's changes are never torn apart.
    """
    groups: dict[_Key, list[PartitionChange]] = {}
    for change in changes:
        key = (change.version.time_us, change.cause, change.broker, change.cause_offset)
        groups.setdefault(key, []).append(change)
    rows = {key: _counted(mine) for key, mine in groups.items()}
    if untold.partitions:
        nothing = {"from_offset": untold.offset, "to_offset": untold.offset, "partitions": 0, **dict.fromkeys(_SUMS, 0)}
        rows.setdefault((untold.time_us, kinds.BASE, None, None), nothing)["partitions"] += untold.partitions
    removals: dict[int, list[UntoldRemoval]] = {}
    told = (UntoldRemoval(1, *one.gone) for one in partitions if one.gone is not None)
    for removal in (*told, *untold.removals):
        removals.setdefault(removal.time_us, []).append(removal)
    for time_us, mine in removals.items():
        offsets = [removal.offset for removal in mine]
        count = sum(removal.partitions for removal in mine)
        counts = {"from_offset": min(offsets), "to_offset": max(offsets), "partitions": count}
        rows[time_us, kinds.REMOVED, None, None] = {**counts, **dict.fromkeys(_SUMS)}
    together: Counter[tuple[int, str]] = Counter()
    for (time_us, cause, _, _), row in rows.items():
        together[time_us, cause] += row["partitions"]
    return [
        {"cluster_id": cluster_id, "time": at(key[0]), "cause": key[1], "broker": key[2], "cause_offset": key[3], **row}
        for key, row in rows.items()
        if together[key[:2]] >= at_least
    ]


def unclean_stops(changes: Iterable[PartitionChange], cluster_id: str) -> list[Row]:
    """Partitions that took a broker out of the ELR as it registered again, by broker and time."""
    groups: dict[tuple[int, int], list[int]] = {}
    for change in changes:
        if change.cause == kinds.UNCLEAN_STOP and change.dropped is not None:
            groups.setdefault((change.dropped, change.version.time_us), []).append(change.version.offset)
    rows = [
        {
            "cluster_id": cluster_id,
            "broker": broker,
            "time": at(time_us),
            "from_offset": min(offsets),
            "partitions": len(offsets),
        }
        for (broker, time_us), offsets in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["from_offset"], row["broker"]))


def outcomes(reassignments: Iterable[Row], cluster_id: str) -> list[Row]:
    """The number of reassignments by the way in which they ended."""
    counts = Counter(row["outcome"] for row in reassignments)
    return [{"cluster_id": cluster_id, "outcome": name, "count": count} for name, count in sorted(counts.items())]
