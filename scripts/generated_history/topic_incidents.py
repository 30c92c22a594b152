"""Incidents of topics: they come, grow, go, and come again under their names."""

from __future__ import annotations

from typing import Final

from quorate.scripts.generated_history.operations import MIN_ISR
from quorate.scripts.generated_history.stage import MINUTE, SECOND, IncidentStage

#: Partitions of new topics, and how often.
_SIZES: Final = (1, 3, 6, 12, 24, 48, 96)
_SIZE_WEIGHTS: Final = (0.2, 0.2, 0.22, 0.18, 0.12, 0.06, 0.02)


class TopicIncidents(IncidentStage):
    """Each public method is one kind of incident, from its beginning to its end."""

    # --- topics --------------------------------------------------------------------------------------

    def create(self) -> None:
        partitions = int(self.random.choice(_SIZES, p=_SIZE_WEIGHTS))
        partitions = max(1, min(partitions, self.partitions // 8))
        self.create_named(self.topics.new_name(), partitions)

    def create_named(self, name: str, partitions: int) -> None:
        replicas = int(self.random.choice((1, 2, 3, 4), p=(0.04, 0.1, 0.81, 0.05)))
        configs: dict[str, str] = {}
        if self.chance(0.5):
            configs[MIN_ISR] = str(min(2, replicas))
        if self.chance(0.3):
            configs["retention.ms"] = str(int(self.random.integers(1, 1000)) * 3_600_000)
        self.do.create_topic(name, partitions, replicas, configs)

    def balance_topics(self) -> None:
        """Topics come or go, so that there are always about as many partitions."""
        missing = self.partitions - self.pool.held_count
        for _ in range(int(self.random.integers(1, 8))):
            towards = max(-0.4, min(0.4, missing * 10 / self.partitions))
            if self.chance(0.5 + towards) or len(self.topics.present) < 4:
                self.create()
            else:
                self.do.delete_topic(self.topics.any())
            self.log.wait(self.between(0.1, 30) * SECOND)

    def create_again(self) -> None:
        """A topic is deleted and comes back under its name, with another id."""
        if len(self.topics.present) < 4:
            return
        number = self.topics.any()
        name, partitions = self.topics.names[number], len(self.topics.rows[number])
        self.do.delete_topic(number)
        self.log.wait(self.between(0.01, 20) * MINUTE)
        self.create_named(name, max(1, partitions))

    def grow(self) -> None:
        number = self.topics.any()
        if len(self.topics.rows[number]):
            self.do.grow_topic(number, int(self.random.integers(1, 8)))
