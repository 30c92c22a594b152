"""Broker processes that follow each other, in steps of virtual time: both cores of each, and nothing of the shells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count

import numpy as np

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.replicas.follower import FollowerCore, Link
from quorate.broker.replicas.leader import LeaderCore
from quorate.broker.replicas.messages import (
    FollowAnswer,
    FollowMessage,
    decode_answer,
    decode_message,
    encode_answer,
    encode_message,
)
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import Record
from quorate.snapshots.image.image import MetadataImage
from tests.guards.sound_images import watch
from tests.unit.broker.images import change, replayed

LAG_MAX_MS = 3_000.0
INTERVAL_MS = 500.0
CLUSTER_ID = "cluster"
#: Milliseconds since 1970 at time 0.
WALL_MS = 1.7e12

_sessions = count(1)


class Process:
    """One process that plays some brokers."""

    def __init__(self, brokers: Iterable[int], log: StandInLog, pace: Pace) -> None:
        self.brokers = frozenset(brokers)
        self.log = log
        self.leader = LeaderCore(log, LAG_MAX_MS)
        self.follower = FollowerCore(pace, INTERVAL_MS, 2_000.0, lambda: next(_sessions), 0.0)
        self.leader.cluster_id = self.follower.cluster_id = CLUSTER_ID
        self.is_frozen = False
        #: How often it named each partition, and how many messages it sent.
        self.said: Counter[tuple[bytes, int]] = Counter()
        self.messages_sent = 0

    @property
    def address(self) -> str:
        return f"process-{min(self.brokers)}"


class Cluster:
    """Processes over one image, and the controller, which grants what leaders ask for."""

    def __init__(
        self,
        image: MetadataImage,
        processes: Iterable[Iterable[int]],
        *,
        log: StandInLog | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.now = 0.0
        self.image = image
        self.log, self.pace = log or StandInLog(0, 0), pace or Pace()
        self.processes = [Process(brokers, self.log, self.pace) for brokers in processes]
        #: (time, topic id, partition, ISR) of everything asked for.
        self.asked: list[tuple[float, bytes, int, tuple[int, ...]]] = []
        self._next_expiry = 0.0
        self.publish(image)
        watch(lambda: self.image)

    def process(self, broker: int) -> Process:
        return next(one for one in self.processes if broker in one.brokers)

    def restart(self, broker: int) -> None:
        """The process that plays a broker begins anew, with nothing but its settings."""
        old = self.process(broker)
        new = Process(old.brokers, self.log, self.pace)
        new.follower = FollowerCore(self.pace, INTERVAL_MS, 2_000.0, lambda: next(_sessions), self.now)
        new.leader.cluster_id = new.follower.cluster_id = CLUSTER_ID
        self.processes[self.processes.index(old)] = new
        self._show(new)

    def write(self, *records: Record) -> None:
        """The image moves on."""
        self.publish(replayed(self.image, *records))

    def publish(self, image: MetadataImage, only: Iterable[Process] | None = None) -> None:
        """An image reaches everybody who is not frozen, or only some."""
        self.image = image
        for process in self.processes if only is None else only:
            if not process.is_frozen:
                self._show(process)

    def thaw(self, process: Process) -> None:
        process.is_frozen = False
        self._show(process)

    def isr(self, topic: bytes, number: int) -> tuple[int, ...]:
        row = self.image.partitions.row(topic, number)
        assert row is not None
        return tuple(sorted(self.image.partitions.partition(row).isr))

    def run(self, milliseconds: float, step: float = 10.0) -> None:
        """Let time pass; every message is answered within a step, every request granted at once."""
        end = self.now + milliseconds
        while self.now < end:
            self.now += step
            self.settle()

    def settle(self) -> None:
        """Do all there is to do now."""
        is_expiry_due = self.now >= self._next_expiry
        for process in self.processes:
            if is_expiry_due and not process.is_frozen:
                process.leader.book.expire(self.now)
        if is_expiry_due:
            self._next_expiry = self.now + LAG_MAX_MS / 2
        while sum(self._turn(process) for process in self.processes if not process.is_frozen):
            continue

    def epochs(self, process: Process) -> Mapping[int, int]:
        brokers = self.image.cluster.brokers
        return {broker: brokers[broker].epoch for broker in process.brokers if broker in brokers}

    def _show(self, process: Process) -> None:
        process.leader.update(self.image, process.brokers, self.now)
        addresses = {broker: one.address for one in self.processes for broker in one.brokers}
        end = self.log.end(WALL_MS + self.now)
        process.follower.update(self.image, process.brokers, addresses, end, self.now)

    def _turn(self, process: Process) -> bool:
        """One look at a process: whether it did anything."""
        process.follower.set_followers(self.epochs(process))
        sent = list(process.follower.messages(self.now))
        for link, message in sent:
            process.messages_sent += 1
            names = zip(message.rows.topic_ids, message.rows.partition_ids.tolist(), strict=True)
            process.said.update((topic.tobytes(), number) for topic, number in names)
            self._exchange(process, link, decode_message(encode_message(message)))
        busy = frozenset(process.brokers - self.epochs(process).keys())
        asked = list(process.leader.book.due(self.now, busy, 100))
        for proposals in asked:
            self._grant(process, proposals)
        return bool(sent or asked)

    def _exchange(self, process: Process, link: Link, message: FollowMessage) -> None:
        to = next(one for one in self.processes if one.address == link.address)
        if to.is_frozen:
            process.follower.failed(link, message, self.now)
            return
        answer: FollowAnswer = to.leader.answer(message, self.now, WALL_MS + self.now)
        process.follower.answered(link, message, decode_answer(encode_answer(answer)), self.now)

    def _grant(self, process: Process, proposals: IsrProposals) -> None:
        process.leader.book.answered(proposals, np.full(len(proposals), ErrorCode.NONE, np.int16), self.now)
        for topic, number, isr in zip(
            proposals.topic_ids, proposals.partition_ids.tolist(), proposals.isr.tolist(), strict=True
        ):
            members = tuple(id_ for id_ in isr if id_ != NO_MEMBER)
            self.asked.append((self.now, topic.tobytes(), number, members))
            self.write(change(int.from_bytes(topic.tobytes(), "big") - 1000, number, isr=members))
