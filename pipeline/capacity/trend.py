"""Counts at each moment, from what begins and what ends between two of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Trend:
    """A cluster over time.

    Attributes:
        times: the moments. topics, partitions, replicas, leaderless: at each. replicas_on, leaders_on: by broker, at
            each.
    """

    times: list[datetime]
    topics: Counts
    partitions: Counts
    replicas: Counts
    leaderless: Counts
    replicas_on: dict[int, Counts]
    leaders_on: dict[int, Counts]

    def as_json(self) -> dict[str, Any]:
        return {
            "times": [time.isoformat() for time in self.times],
            "topics": self.topics.tolist(),
            "partitions": self.partitions.tolist(),
            "replicas": self.replicas.tolist(),
            "leaderless": self.leaderless.tolist(),
            "replicas_on": {str(broker): counts.tolist() for broker, counts in self.replicas_on.items()},
            "leaders_on": {str(broker): counts.tolist() for broker, counts in self.leaders_on.items()},
        }


@dataclass(frozen=True)
class RecordsByDay:
    """The number of records of each type in a log on each of its days (UTC); the most frequent type first."""

    days: list[str]
    counts: dict[str, Counts]

    def as_json(self) -> dict[str, Any]:
        return {"days": self.days, "counts": {name: counts.tolist() for name, counts in self.counts.items()}}


def standing(changes: Iterable[tuple[int, int]], count: int) -> Counts:
    """Return how many stand at each of `count` moments.

    Args:
        changes: (moment from which on, how many more stand; fewer where negative). A moment past the last is none.
    """
    steps = np.zeros(count + 1, np.int64)
    for at, more in changes:
        steps[min(at, count)] += more
    return np.cumsum(steps[:-1])


def standing_on(changes: Iterable[tuple[int, int, int]], count: int) -> dict[int, Counts]:
    """Return the same by broker, from (broker, moment, how many more)."""
    steps: dict[int, list[tuple[int, int]]] = {}
    for broker, at, more in changes:
        steps.setdefault(broker, []).append((at, more))
    return {broker: standing(of_broker, count) for broker, of_broker in sorted(steps.items())}


def by_racks(counts: dict[int, Counts], racks: dict[int, str | None], moments: int) -> dict[str, Counts]:
    """Return counts by broker added up by rack; brokers that are gone, or have no rack, are together."""
    found: dict[str, Counts] = {}
    for broker, of_broker in counts.items():
        rack = racks.get(broker) or "(none)"
        found[rack] = found.get(rack, np.zeros(moments, np.int64)) + of_broker
    return dict(sorted(found.items()))
