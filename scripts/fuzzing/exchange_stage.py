"""A broker that leads and two that follow it, each in a process of its own, in steps of virtual time.

Both sides of the replica exchange are production's, without their shells. The controller is one that grants every ISR.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.replicas.follower import Address, FollowerCore, Link
from quorate.broker.replicas.leader import LeaderCore
from quorate.broker.replicas.messages import FollowMessage, decode_answer, decode_message, encode_answer, encode_message
from quorate.broker.replicas.peers import PeerAddresses
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay

LEADER, HONEST, HOSTILE = 1, 2, 3
LAG_MAX_MS: Final = 3_000.0
STEP_MS: Final = 500.0
_CLUSTER_ID: Final = "fuzzed"
_TOPIC: Final = (1).to_bytes(16, "big")
_WALL_MS: Final = 1.7e12
#: 1,000 bytes at first, 1,000 a second, and replicas that copy twice as fast.
_LOG, _PACE = StandInLog(1_000, 1_000), Pace(2_000)
_LEADER_AT: Final[Address] = "127.0.0.1:18001"
#: Replicas and ISR of each partition; 1 leads them all.
_PARTITIONS: Final = (((1, 2, 3), (1, 2, 3)), ((1, 3, 2), (1,)), ((1, 2), (1,)), ((1, 3), (1, 3)))


class FollowingProcess:
    """A process that plays one broker, and follows."""

    def __init__(self, broker: int, image: MetadataImage) -> None:
        sessions = count(1_000 * broker)
        self.broker = broker
        self.core = FollowerCore(_PACE, STEP_MS, 2_000.0, lambda: next(sessions), 0.0)
        self.core.cluster_id, self.core.address = _CLUSTER_ID, f"127.0.0.1:{18_000 + broker}"
        self.update(image, 0.0)

    def update(self, image: MetadataImage, now_ms: float) -> None:
        """Take a new image."""
        self.core.update(image, (self.broker,), {LEADER: _LEADER_AT}, _LOG.end(_WALL_MS + now_ms), now_ms)
        self.core.set_followers({self.broker: image.cluster.brokers[self.broker].epoch})


class ExchangeStage:
    """See the module."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.image = _image()
        self.leader = LeaderCore(_LOG, LAG_MAX_MS)
        self.leader.cluster_id = _CLUSTER_ID
        self.leader.update(self.image, (LEADER,), 0.0)
        self.followers = {broker: FollowingProcess(broker, self.image) for broker in (HONEST, HOSTILE)}
        self._addresses = PeerAddresses({})

    def messages(self, broker: int) -> Iterator[tuple[Link, FollowMessage, bytes]]:
        """The messages that a follower sends now, also as they go over the wire."""
        for link, message in self.followers[broker].core.messages(self.now_ms):
            yield link, message, encode_message(message)

    def answer(self, frame: bytes) -> bytes:
        """The answer of the leader's process.

        Raises:
            MalformedMessage: nothing, for that is no message.
        """
        answer = self.leader.answer(decode_message(frame), self.now_ms, _WALL_MS + self.now_ms)
        self._addresses.in_image(self.image, (LEADER,), self.leader.heard_from)
        return encode_answer(answer)

    def answered(self, broker: int, link: Link, message: FollowMessage, frame: bytes) -> None:
        """Let a follower hear an answer.

        Raises:
            MalformedMessage: that is none.
        """
        self.followers[broker].core.answered(link, message, decode_answer(frame), self.now_ms)

    def exchange(self, broker: int) -> list[bytes]:
        """Let a follower say what it has to say, and hear the answers; what went over the wire, both ways."""
        said: list[bytes] = []
        for link, message, frame in self.messages(broker):
            answer = self.answer(frame)
            self.answered(broker, link, message, answer)
            said += (frame, answer)
        return said

    def step(self) -> None:
        """Let time pass, and the leader ask for the ISRs that it wants."""
        self.now_ms += STEP_MS
        self.leader.book.expire(self.now_ms)
        for proposals in list(self.leader.book.due(self.now_ms, (), 100)):
            self._grant(proposals)

    @property
    def log_end(self) -> int:
        """The end of the leader's logs now."""
        return _LOG.end(_WALL_MS + self.now_ms)

    @staticmethod
    def replicas() -> list[tuple[int, ...]]:
        """Of all partitions, by number."""
        return [replicas for replicas, _ in _PARTITIONS]

    def isrs(self) -> list[tuple[int, ...]]:
        """Of all partitions, by number."""
        table = self.image.partitions
        rows = [table.row(_TOPIC, number) for number in range(len(_PARTITIONS))]
        return [tuple(sorted(table.partition(row).isr)) for row in rows if row is not None]

    def _grant(self, proposals: IsrProposals) -> None:
        self.leader.book.answered(proposals, np.full(len(proposals), ErrorCode.NONE, np.int16), self.now_ms)
        for number, padded in zip(proposals.partition_ids.tolist(), proposals.isr.tolist(), strict=True):
            isr = tuple(member for member in padded if member != NO_MEMBER)
            replicas = _PARTITIONS[number][0]
            if LEADER not in isr or not set(isr) <= set(replicas) or len(set(isr)) != len(isr):
                raise AssertionError(f"the leader asks for the ISR {isr} of a partition with the replicas {replicas}")
            change = PartitionChangeRecord(partition_id=number, topic_id=_TOPIC, isr=isr)
            self.image = _replayed(self.image, [VersionedRecord(change, 2)])
        self.leader.update(self.image, (LEADER,), self.now_ms)
        for follower in self.followers.values():
            follower.update(self.image, self.now_ms)


def _image() -> MetadataImage:
    items = [VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=25), 0)]
    for broker in (LEADER, HONEST, HOSTILE):
        record = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=_uuid(100, broker),
            broker_epoch=10 + broker,
            fenced=False,
            log_dirs=(_uuid(200, broker),),
        )
        items.append(VersionedRecord(record, 3))
    items.append(VersionedRecord(TopicRecord(name="fuzzed", topic_id=_TOPIC), 0))
    for number, (replicas, isr) in enumerate(_PARTITIONS):
        partition = PartitionRecord(
            partition_id=number,
            topic_id=_TOPIC,
            replicas=replicas,
            isr=isr,
            leader=LEADER,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(_uuid(200, broker) for broker in replicas),
        )
        items.append(VersionedRecord(partition, 2))
    return _replayed(EMPTY_IMAGE, items)


def _replayed(image: MetadataImage, items: list[VersionedRecord]) -> MetadataImage:
    return replay(image, items, Provenance(image.provenance.end_offset + len(items) - 1, 1, 1_000))


def _uuid(kind: int, broker: int) -> bytes:
    return (1_000 * kind + broker).to_bytes(16, "big")
