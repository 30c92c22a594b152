"""Shared by all incidents of a made-up history: the cluster, chance, and ways to find partitions."""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.scripts.generated_history.operations import GeneratedCluster
from quorate.scripts.generated_history.partition_pool import Rows, bit_of

#: Milliseconds.
SECOND: Final = 1000.0
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


class IncidentStage:
    """The cluster on which incidents take place."""

    def __init__(self, operations: GeneratedCluster, partitions: int) -> None:
        """``partitions``: about how many the cluster has."""
        self.do = operations
        self.log = operations.log
        self.random = operations.random
        self.pool = operations.pool
        self.topics = operations.topics
        self.brokers = operations.brokers
        self.partitions = partitions

    def chance(self, probability: float) -> bool:
        """Whether something of that probability happens."""
        return bool(self.random.random() < probability)

    def between(self, low: float, high: float) -> float:
        """Some number, all equally likely."""
        return float(self.random.uniform(low, high))

    def count(self, share: float) -> int:
        """A number of partitions, up to about a share of all, small ones more often."""
        most = max(2.0, self.partitions * share)
        return max(1, int(most ** self.between(0.0, 1.0)))

    def up_broker(self) -> int | None:
        """A broker that is up, None if there are too few to lose one."""
        up = self.brokers.up
        return up[int(self.random.integers(len(up)))] if len(up) > 3 else None

    def sample(self, rows: Rows, count: int) -> Rows:
        """Some of the rows, ascending."""
        if len(rows) <= count:
            return rows
        chosen: Rows = np.sort(self.random.choice(rows, count, replace=False))
        return chosen

    def in_isr(self, broker: int) -> Rows:
        """The partitions that have a broker in their ISR."""
        rows = self.pool.rows_with(broker)
        part = self.pool.columns.take(rows)
        found: Rows = rows[(bit_of(part, broker) & part.isr) != 0]
        return found
