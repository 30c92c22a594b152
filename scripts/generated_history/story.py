"""The story of the made-up cluster: which incident comes next, transactions, and the end of the log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quorate.metadata_log.records.records import NoOpRecord
from quorate.scripts.generated_history.broker_incidents import BrokerIncidents
from quorate.scripts.generated_history.operations import GeneratedCluster
from quorate.scripts.generated_history.partition_pool import NOBODY, Columns, bit
from quorate.scripts.generated_history.resources import Resources
from quorate.scripts.generated_history.stage import SECOND, IncidentStage
from quorate.scripts.generated_history.topic_incidents import TopicIncidents


class IncidentStory(IncidentStage):
    """Each method is one kind of incident, from its beginning to its end."""

    def __init__(self, operations: GeneratedCluster, partitions: int) -> None:
        """``partitions``: about how many the cluster has."""
        super().__init__(operations, partitions)
        self._of_brokers = BrokerIncidents(operations, partitions)
        self._of_topics = TopicIncidents(operations, partitions)
        self._resources = Resources(operations)
        self._leader = 1
        kinds: list[tuple[float, Callable[[], None]]] = [
            (0.16, self._of_brokers.restart),
            (0.015, self._of_brokers.rolling_restart),
            (0.07, self._of_brokers.crash),
            (0.008, self._of_brokers.rack_outage),
            (0.20, self._of_brokers.flaps),
            (0.10, self._of_topics.balance_topics),
            (0.03, self._of_topics.create_again),
            (0.03, self._of_topics.grow),
            (0.08, self._of_brokers.reassign),
            (0.02, self._of_brokers.finish_reassignments),
            (0.15, self._requests),
            (0.012, self._resources.clear_all_elrs),
            (0.03, self._fail_over),
            (0.02, self._committed_transaction),
            (0.02, self._aborted_transaction),
            (0.012, self._of_brokers.lose_directory),
            (0.01, self._of_brokers.unclean_elections),
            (0.004, self._of_brokers.replace_broker),
            (0.006, self._resources.switch_feature),
            (0.02, self._idle),
        ]
        weights = np.array([weight for weight, _ in kinds])
        self._weights = weights / weights.sum()
        self._kinds = [kind for _, kind in kinds]

    def run(self) -> None:
        """The whole story; ends with ``HistoryIsFull``."""
        self.log.lead(self._leader, 1)
        self._resources.found()
        for broker in list(self.brokers.ids):
            self._of_brokers.register(broker)
        while self.pool.held_count < self.partitions:
            self._of_topics.create()
            self.log.wait(SECOND)
        upgrades = [self.log.offset + self.log.plan.records // 50, self.log.offset + self.log.plan.records // 12]
        while True:
            if upgrades and self.log.offset >= upgrades[0]:
                upgrades.pop(0)
                self._resources.upgrade()
            self.log.rest(float(self.random.uniform(0.2, 1.0)))
            self._kinds[int(self.random.choice(len(self._kinds), p=self._weights))]()

    def end_open(self) -> None:
        """The last records: a transaction that has begun and not ended, up to exactly as many as the log is to have."""
        self.do.is_dry = True
        self.log.begin("Create topics")
        left = self.log.plan.records - self.log.offset
        while left > 1:
            partitions = min(left - 1, self.log.plan.batch_rows_max)
            self.do.create_topic(f"never.created-{left}", partitions, 3, {})
            left = self.log.plan.records - self.log.offset
        if left:
            self.log.write_records((NoOpRecord(), 0))

    # --- the rest ------------------------------------------------------------------------------------

    def _requests(self) -> None:
        for _ in range(int(self.random.integers(1, 6))):
            self._resources.any()
            self.log.wait(self.between(0.1, 60) * SECOND)

    def _idle(self) -> None:
        for _ in range(int(self.random.integers(1, 10))):
            self.log.write_records((NoOpRecord(), 0))
            self.log.wait(500)

    def _fail_over(self) -> None:
        """Another controller leads, after as many elections as it took."""
        self.log.wait(self.between(0.1, 3) * SECOND)
        self._leader = self._leader % 3 + 1
        self.log.lead(self._leader, self.log.epoch + int(self.random.choice((1, 1, 1, 2, 4))))

    def _committed_transaction(self) -> None:
        self.log.begin("Create topics")
        for _ in range(int(self.random.integers(1, 5))):
            self._of_topics.create()
        self._requests()
        if len(self.topics.present) > 4:
            self.do.delete_topic(self.topics.any())
        self.log.commit()

    def _aborted_transaction(self) -> None:
        """A controller is lost in the middle of one; the next leader undoes it."""
        self.do.is_dry = True
        self.log.begin("Broker returns")
        size = self.log.plan.batch_rows_max
        held = np.flatnonzero(self.pool.is_held)
        rows = self.sample(held, self.count(0.2))[: 3 * size]
        part = self.pool.columns.take(rows)
        can = (np.bitwise_count(part.isr) > 1) & (part.leader != NOBODY)
        self.do.change(rows[can], _shrink)
        if self.chance(0.7):
            self._of_topics.create_named(f"never.created-{self.log.offset}", max(1, min(48, self.partitions // 8)))
        if self.chance(0.5):
            self._requests()
        if self.chance(0.4):
            self._resources.clear_all_elrs()
        if self.chance(0.4):
            self.do.delete_topic(self.topics.any())
        self.do.is_dry = False
        self._fail_over()
        self.log.abort("The controller that began it is gone")


def _shrink(_: Columns, after: Columns) -> None:
    """Whoever leads is alone in the ISR."""
    after.isr = bit(after.leader)
