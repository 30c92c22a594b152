"""Partitions whose ISR shrinks and grows again and again. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from quorate.snapshots.incidents.findings import Row, at
from quorate.snapshots.incidents.serial.changes import PartitionChange
from quorate.snapshots.incidents.serial.versions import PartitionHistory


class Flapping(NamedTuple):
    """A partition that flapped; times in microseconds since 1970."""

    partition: PartitionHistory
    first_offset: int
    from_us: int
    to_us: int
    #: In all, and at most within the window.
    flaps: int
    most: int
    #: That came back most often; of several the one that came first.
    broker: int


def flapping(
    partition: PartitionHistory, changes: Sequence[PartitionChange], more_than: int, window: timedelta
) -> Flapping | None:
    """The partition, if its ISR shrank and grew again more often than that within the time."""
    moves = [change for change in changes if change.shrank or change.grew]
    flaps = [now for before, now in pairwise(moves) if now.grew and before.shrank]
    if not flaps:
        return None
    times_ms = [flap.version.time_us // 1000 for flap in flaps]
    width = int(window.total_seconds() * 1000)
    ordered = sorted(times_ms)
    most = max(bisect_right(ordered, now) - bisect_left(ordered, max(now - width, 0)) for now in times_ms)
    if most <= more_than:
        return None
    times_us = [flap.version.time_us for flap in flaps]
    gained = Counter(flap.gained for flap in flaps)
    broker = max(gained, key=lambda one: gained[one])
    assert broker is not None
    return Flapping(partition, flaps[0].version.offset, min(times_us), max(times_us), len(flaps), most, broker)


def grouped_flapping(found: Iterable[Flapping], cluster_id: str) -> list[Row]:
    """Partitions that flap, by the broker that came back most often."""
    by_broker: dict[int, list[Flapping]] = {}
    for one in found:
        by_broker.setdefault(one.broker, []).append(one)
    rows = [_group(cluster_id, broker, mine) for broker, mine in by_broker.items()]
    return sorted(rows, key=lambda row: (row["from_offset"], row["broker"]))


def _group(cluster_id: str, broker: int, mine: Sequence[Flapping]) -> Row:
    most = max(one.most for one in mine)
    return {
        "cluster_id": cluster_id,
        "broker": broker,
        "partitions": len(mine),
        "from_offset": min(one.first_offset for one in mine),
        "from_time": at(min(one.from_us for one in mine)),
        "to_time": at(max(one.to_us for one in mine)),
        "flaps": sum(one.flaps for one in mine),
        "most": most,
        "first_partition": min(one.partition.name for one in mine if one.most == most),
    }
