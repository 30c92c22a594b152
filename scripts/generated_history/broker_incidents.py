"""Incidents of brokers and their replicas: restarts, crashes, lost disks, slow followers, moves."""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.scripts.generated_history.partition_pool import NOBODY, Rows, bit_of
from quorate.scripts.generated_history.stage import HOUR, MINUTE, SECOND, IncidentStage

#: Partitions of one round of preferred elections at most, as in Kafka.
_BALANCED_MAX: Final = 1000


class BrokerIncidents(IncidentStage):
    """Each public method is one kind of incident, from its beginning to its end."""

    # --- brokers -------------------------------------------------------------------------------------

    def register(self, broker: int) -> None:
        epoch = self.log.offset
        self.log.write([self.brokers.register(broker, epoch, self.do.level)])
        self.log.wait(self.between(1, 4) * SECOND)
        self.brokers.is_up[broker] = True
        self.log.write([self.brokers.unfence(broker)])

    def _go_down(self, broker: int) -> None:
        """Its session has expired: partitions first or the fencing first, as the two kinds of controllers do it."""
        self.brokers.is_up[broker] = False
        fence = [self.brokers.fence(broker)]
        if self.chance(0.5):
            self.do.leave_isr(self.in_isr(broker), broker, first=fence)
        else:
            self.do.leave_isr(self.in_isr(broker), broker, last=fence)

    def _shut_down(self, broker: int) -> None:
        self.brokers.is_up[broker] = False
        self.do.leave_isr(self.in_isr(broker), broker, first=[self.brokers.shut_down(broker)])
        self.log.wait(self.between(2, 20) * SECOND)
        self.log.write([self.brokers.fence(broker)])

    def _come_back(self, broker: int, *, was_clean: bool) -> None:
        rows = self.pool.rows_with(broker)
        epoch = self.log.offset
        registration = [self.brokers.register(broker, epoch, self.do.level)]
        if was_clean:
            self.log.write(registration)
        else:
            part = self.pool.columns.take(rows)
            self.do.leave_elr(rows[(part.elr & bit_of(part, broker)) != 0], broker, registration)
        self.log.wait(self.between(2, 30) * SECOND)
        self.brokers.is_up[broker] = True
        waiting = rows[self.pool.columns.leader[rows] == NOBODY]
        fits = self.log.offset + len(waiting) < self.log.plan.story_end
        in_transaction = fits and len(waiting) > self.log.plan.batch_rows_max
        if in_transaction:
            self.log.begin("Broker returns")
        self.do.elect(waiting, last=[self.brokers.unfence(broker)])
        if in_transaction:
            self.log.commit()
        self._catch_up(broker)

    def _catch_up(self, broker: int) -> None:
        """Leaders take it back into their ISRs, some partitions at a time."""
        rows = self.pool.rows_with(broker)
        part = self.pool.columns.take(rows)
        behind = rows[((bit_of(part, broker) & part.isr) == 0) & (part.leader != NOBODY)]
        behind = behind[np.argsort(self.pool.columns.leader_id[behind], kind="stable")]
        at = 0
        while at < len(behind):
            count = max(1, int(self.random.exponential(400)))
            self.log.wait(self.between(0.05, 2) * SECOND)
            self.do.join_isr(np.sort(behind[at : at + count]), broker)
            at += count

    def _balance(self) -> None:
        """Preferred elections, a round at a time."""
        columns = self.pool.columns
        first_leads = (columns.isr & 1) != 0
        is_due = self.pool.is_held & (columns.leader > 0) & first_leads & self.brokers.is_up[columns.replicas[:, 0]]
        rows = np.flatnonzero(is_due)
        for at in range(0, len(rows), _BALANCED_MAX):
            self.log.wait(self.between(1, 300) * SECOND)
            self.do.prefer(rows[at : at + _BALANCED_MAX])

    def restart(self) -> None:
        broker = self.up_broker()
        if broker is not None:
            self._restart_of(broker)
            if self.chance(0.6):
                self._balance()

    def _restart_of(self, broker: int) -> None:
        self._shut_down(broker)
        self.log.wait(self.between(0.2, 4) * MINUTE)
        self._come_back(broker, was_clean=True)

    def rolling_restart(self) -> None:
        brokers = self.brokers.up
        if len(brokers) <= 3:
            return
        if self.chance(0.6):
            rack = int(self.random.integers(3))
            brokers = [broker for broker in brokers if self.brokers.rack_of(broker) == rack]
        for broker in brokers:
            self._restart_of(broker)
            self.log.wait(self.between(1, 5) * MINUTE)
            if self.chance(0.3):
                self._balance()
        self._balance()

    def crash(self) -> None:
        broker = self.up_broker()
        if broker is None:
            return
        self._go_down(broker)
        self.log.wait(self.between(0.5, 90) * MINUTE)
        if self.chance(0.2):
            self.flaps()
        self._come_back(broker, was_clean=False)
        self._balance()

    def rack_outage(self) -> None:
        rack = int(self.random.integers(3))
        brokers = [broker for broker in self.brokers.up if self.brokers.rack_of(broker) == rack]
        if len(self.brokers.up) - len(brokers) < 3:
            return
        for broker in brokers:
            self._go_down(broker)
            self.log.wait(self.between(0, 3) * SECOND)
        self.log.wait(self.between(2, 40) * MINUTE)
        for broker in brokers:
            self._come_back(broker, was_clean=False)
        self._balance()

    def lose_directory(self) -> None:
        """A disk fails; the broker goes on without it, and is restarted with a new one."""
        broker = self.up_broker()
        if broker is None:
            return
        number = int(self.random.integers(2))
        rows = self.in_isr(broker)
        part = self.pool.columns.take(rows)
        lost = self.brokers.lost_code(broker, number)
        is_lost = ((part.replicas == broker) & (part.directories == lost)).any(axis=1)
        is_held_elsewhere = np.bitwise_count(part.isr) > 1
        record = [self.brokers.lose_directory(broker, number)]
        self.do.leave_isr(rows[is_lost & is_held_elsewhere], broker, first=record)
        self.log.wait(self.between(0.5, 6) * HOUR)
        self._restart_of(broker)

    def replace_broker(self) -> None:
        """One goes for good and a new one comes; who has replicas on the old one is moved."""
        broker = self.up_broker()
        if broker is None or self.brokers.next_id > self.brokers.id_max:
            return
        new = self.brokers.next_id
        self.brokers.next_id += 1
        self.brokers.ids.append(new)
        self.register(new)
        rows = self.pool.rows_with(broker)
        part = self.pool.columns.take(rows)
        can = (part.adding == 0) & ((part.replicas != new).all(axis=1)) & (part.leader != NOBODY)
        rows, part = rows[can], part.take(can)
        places = (part.replicas == broker).argmax(axis=1)
        self.do.reassign(rows, places, np.full(len(rows), new, np.int32), replaces=True)
        self.log.wait(self.between(1, 9) * HOUR)
        self._catch_up(new)
        self.do.assign_directories(rows)
        self._shut_down(broker)
        if not len(self.pool.rows_with(broker)):
            self.log.wait(HOUR)
            self.log.write([self.brokers.unregister(broker)])
        else:
            self._come_back(broker, was_clean=True)

    # --- partitions ----------------------------------------------------------------------------------

    def flaps(self) -> None:
        """A slow broker falls behind and catches up, again and again."""
        broker = self.up_broker()
        if broker is None:
            return
        rows = self.in_isr(broker)
        part = self.pool.columns.take(rows)
        can = (np.bitwise_count(part.isr) > 1) & (part.leader_id != broker)
        rows = self.sample(rows[can], self.count(0.05))
        for _ in range(int(self.random.integers(1, 12))):
            slow = rows if self.chance(0.5) else self.sample(rows, max(1, len(rows) // 2))
            self.do.leave_isr(slow, broker)
            self.log.wait(self.between(1, 40) * SECOND)
            self.do.join_isr(slow, broker)
            self.log.wait(self.between(5, 600) * SECOND)

    def unclean_elections(self) -> None:
        columns = self.pool.columns
        rows = np.flatnonzero(self.pool.is_held & (columns.leader == NOBODY))
        if len(rows):
            self.do.elect(self.sample(rows, 2000), allows_unclean=True)

    def reassign(self) -> None:
        """Replicas are moved or added; most moves are completed, some are cancelled, some stay open."""
        columns = self.pool.columns
        has_room = columns.replicas[:, 4] == NOBODY
        can = self.pool.is_held & (columns.adding == 0) & (columns.leader != NOBODY) & has_room
        rows = self.sample(np.flatnonzero(can), self.count(0.1))
        part = columns.take(rows)
        up = np.array(self.brokers.up, np.int32)
        targets = up[self.random.integers(0, len(up), len(rows))]
        fits = (part.replicas != targets[:, None]).all(axis=1)
        rows, part, targets = rows[fits], part.take(fits), targets[fits]
        places = (self.random.random(len(rows)) * part.replica_count).astype(np.int64)
        self.do.reassign(rows, places, targets, replaces=self.chance(0.85))
        self.log.wait(self.between(0.5, 200) * MINUTE)
        fate = self.random.random(len(rows))
        self._complete(rows[fate < 0.9])
        self._cancel(rows[(fate >= 0.9) & (fate < 0.95)])

    def _complete(self, rows: Rows) -> None:
        """The added replicas catch up, broker by broker."""
        part = self.pool.columns.take(rows)
        place = np.maximum(np.bitwise_count(part.adding - np.uint8(1)).astype(np.int64) % 8, 0)
        target = part.replicas[np.arange(len(rows)), place]
        can = (part.adding != 0) & (part.leader != NOBODY)
        for broker in np.unique(target[can]):
            if broker != NOBODY and self.brokers.is_up[broker]:
                self.do.join_isr(rows[can & (target == broker)], int(broker))
                self.log.wait(self.between(0, 5) * SECOND)
        self.do.assign_directories(rows)

    def _cancel(self, rows: Rows) -> None:
        part = self.pool.columns.take(rows)
        can = (part.adding != 0) & (part.leader != NOBODY) & ((part.isr & ~part.adding) != 0)
        self.do.cancel(rows[can])

    def finish_reassignments(self) -> None:
        columns = self.pool.columns
        rows = np.flatnonzero(self.pool.is_held & (columns.adding != 0))
        if not len(rows):
            return
        if self.chance(0.2):
            self._cancel(rows)
        else:
            self._complete(rows)
