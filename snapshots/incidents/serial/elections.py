"""Elections that may have lost data, and what they may have cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.election_groups import grouped_elections, of_one_election
from quorate.snapshots.incidents.findings import Row, at
from quorate.snapshots.incidents.serial.changes import PartitionChange
from quorate.snapshots.incidents.serial.versions import PartitionHistory, PartitionVersion


def risky_elections(partition: PartitionHistory, changes: Sequence[PartitionChange], cluster_id: str) -> Iterator[Row]:
    """Elections of a leader that was neither in the ISR nor eligible; within one transaction each is told once."""
    told: set[tuple[int, str, int]] = set()
    for change in changes:
        version = change.version
        key = (version.offset, change.cause, version.leader)
        if change.cause in kinds.RISKY and key not in told and partition.versions[0].offset < version.offset:
            told.add(key)
            yield {
                "cluster_id": cluster_id,
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": version.offset,
                "time": at(version.time_us),
                "kind": change.cause,
                "leader": version.leader,
                **_cost(partition.versions, version),
            }


def groups_of(rows: Sequence[Row]) -> list[Row]:
    """Groups by time, kind and leader."""
    return grouped_elections(map(of_one_election, rows))


def _cost(versions: Sequence[PartitionVersion], election: PartitionVersion) -> Row:
    """The records that others may have written before one election, by all versions of its partition."""
    count = sum(version.offset < election.offset for version in versions)
    past = versions[:count]
    ends = [version.time_us for version in versions[1 : count + 1]]
    ends += [versions[-1].time_us] * (count - len(ends))
    led = [place for place, version in enumerate(past) if version.leader >= 0]
    if not led:
        return {"ahead": None, "exposed_ms": None}
    member = max((place for place, version in enumerate(past) if election.leader in version.isr), default=None)
    isr_ended, last_isr = ends[led[-1]], past[led[-1]].isr
    ahead = []
    for replica in last_isr:
        if replica != election.leader:
            # What is behind the end of the last ISR is of no interest: that version, which lacks them all, is no
            # absence.
            absent = [
                end
                for version, end in zip(past, ends, strict=True)
                if replica not in version.isr and version.time_us < isr_ended
            ]
            since = max(absent, default=min(version.time_us for version in versions))
            ahead.append((isr_ended // 1000 - since // 1000, replica))
    exposed = None if member is None else isr_ended // 1000 - ends[member] // 1000
    return {
        "ahead": [{"in_isr_ms": held, "broker": replica} for held, replica in sorted(ahead, reverse=True)] or None,
        "exposed_ms": 0 if election.leader in last_isr else exposed,
    }
