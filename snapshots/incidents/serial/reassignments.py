"""Every change of replicas, from its first record to its last. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.snapshots.incidents.findings import Row, at
from quorate.snapshots.incidents.kinds import OPEN, TOPIC_REMOVED
from quorate.snapshots.incidents.serial.versions import PartitionHistory, PartitionVersion, stretches_in_which


def reassignments(partition: PartitionHistory, cluster_id: str) -> Iterator[Row]:
    """The reassignments that took a while, and those that were done at once."""
    key = {
        "cluster_id": cluster_id,
        "topic_id": partition.topic_id,
        "partition": partition.partition,
        "topic": partition.topic,
    }
    for row in (*_lasting(partition), *_at_once(partition)):
        yield {**key, **row}


def is_open(version: PartitionVersion) -> bool:
    """Whether a reassignment is under way."""
    return bool(version.adding or version.removing)


def has_arrived(last: PartitionVersion, end: PartitionVersion) -> bool:
    """Whether a reassignment came to its target: cancelled, it takes away what it added, or leaves what it removes.

    ``last``: the last version in which it was under way. ``end``: the one behind it.
    """
    return set(end.replicas) == {broker for broker in last.replicas if broker not in last.removing}


def _lasting(partition: PartitionHistory) -> Iterator[Row]:
    versions = partition.versions
    for first, end in stretches_in_which(versions, is_open):
        # The last version in which it was open, and the ISR that it ended with, or has now.
        last = versions[-1 if end is None else end - 1]
        isr = versions[-1 if end is None else end].isr
        row = {
            "from_offset": versions[first].offset,
            "from_time": at(versions[first].time_us),
            "replicas": list(versions[first - 1].replicas) if first else None,
            "adding": list(last.adding),
            "removing": list(last.removing),
            "waiting_for": [broker for broker in last.adding if broker not in isr],
        }
        if end is not None:
            outcome = "completed" if has_arrived(last, versions[end]) else "cancelled"
            yield {**row, **_end(versions[end].offset, versions[end].time_us, outcome)}
        elif partition.gone is not None:
            yield {**row, **_end(*partition.gone, TOPIC_REMOVED)}
        else:
            yield {**row, "to_offset": None, "to_time": None, "outcome": OPEN}


def _end(offset: int, time_us: int, outcome: str) -> Row:
    return {"to_offset": offset, "to_time": at(time_us), "outcome": outcome}


def _at_once(partition: PartitionHistory) -> Iterator[Row]:
    """Those to replicas that were there already: one record."""
    for before, now in zip(partition.versions, partition.versions[1:], strict=False):
        if before.replicas != now.replicas and not is_open(before) and not is_open(now):
            yield {
                "from_offset": now.offset,
                "from_time": at(now.time_us),
                "replicas": list(before.replicas),
                "adding": [broker for broker in now.replicas if broker not in before.replicas],
                "removing": [broker for broker in before.replicas if broker not in now.replicas],
                "waiting_for": [],
                **_end(now.offset, now.time_us, "completed"),
            }
