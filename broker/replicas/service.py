"""The replica manager of a service that holds data: it says itself who has what.

The service replicates by means of its own. Where a partition is led, it knows which replicas have everything that was
acknowledged, and says so here; the ISR that Quorate keeps, and elects from, is what it said. An ISR member stays one
until the service says that it fell behind, or the controllers lose its broker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.own_tasks import OwnTasks
from quorate.broker.publisher import Manifest
from quorate.broker.replicas.claims import Claims, PartitionKey
from quorate.broker.replicas.isr_book import AS_BEFORE, IsrBook
from quorate.broker.replicas.isr_requests import IsrRequests
from quorate.broker.replicas.led_rows import ALWAYS, UNKNOWN
from quorate.broker.replicas.manager import ReplicaManager, ReplicaReport, Station
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.metadata_log.ids import UUID_BYTES, Uuid
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.difference.local_changes import LocalReplica
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.partition import Partition

NOTICE: Final = "a replica is in sync when the service says so"
_NUMBERS: Final = np.iinfo(np.int32)


class NotNoted(QuorateError):
    """A statement about a replica that does not fit the newest image; ``code`` says why.

    UNKNOWN_TOPIC_ID: there is no such partition. NOT_LEADER_OR_FOLLOWER: it is not led here, or has no such replica.
    FENCED_LEADER_EPOCH: it has a newer leader epoch. UNKNOWN_LEADER_EPOCH: the image is older, say it again later.
    STALE_BROKER_EPOCH: the replica's broker is registered under another epoch.
    """

    def __init__(self, code: ErrorCode, what: str, why: str) -> None:
        super().__init__(f"{what}: {why} ({code.name})")
        self.code = code


class ServiceReplicas(ReplicaManager):
    """See the module. Subclass it for what a broker here is told of its replicas. Not thread-safe.

    Args:
        holds_unfencing: a broker here is unfenced only after ``ready`` was called for it.
    """

    def __init__(self, *, holds_unfencing: bool = False) -> None:
        super().__init__()
        self._holds_unfencing = holds_unfencing
        self._has_begun = False
        #: Whether brokers here can serve, as far as that was said.
        self._can_serve: dict[int, bool] = {}
        self._book = IsrBook(lag_max_ms=0.0, trusts_isr=True)
        self._claims = Claims()
        #: Of whom it was said that they fell behind, while a request may still bring them in.
        self._leaving: dict[tuple[PartitionKey, int], int] = {}
        self._image = EMPTY_IMAGE
        self._played: frozenset[int] = frozenset()
        #: Of all images of this run.
        self._newest_offset = -1
        #: Replicas that an image did not have any more, until their data may go.
        self._dropped: dict[tuple[int, PartitionKey], LocalReplica] = {}
        self._requests: IsrRequests

    @property
    def name(self) -> str:
        return "service-replicas"

    # --- what a service is told ----------------------------------------------------------------------

    def lead(self, broker_id: int, replica: LocalReplica) -> None:
        """A broker here leads a partition, under ``replica.state.leader_epoch``; again at every change of its state."""

    def follow(self, broker_id: int, replica: LocalReplica) -> None:
        """It has a replica of what another leads, or nobody does (leader -1); again at every change of its state."""

    def drop(self, broker_id: int, replica: LocalReplica) -> None:
        """It has no replica of it any more: moved away, or deleted. ``replica.state``: as it was before.

        Its data must stay until ``on_deletable``: after a change of the controller an older image may come, which does
        not have what there is.
        """

    def on_deletable(self, broker_id: int, replica: LocalReplica) -> None:
        """The data of a replica that was dropped may go for good (``may_delete``); before ``lead`` and ``follow``."""

    # --- what a service says -------------------------------------------------------------------------

    def caught_up(self, topic_id: Uuid, partition: int, leader_epoch: int, broker_id: int, broker_epoch: int) -> None:
        """A replica has everything that was acknowledged, and will be asked before anything more is.

        Its leader here asks for an ISR with it. One that leaves the ISR is to be said to have caught up anew, once an
        image shows it outside. That it is granted shows in an image: until then writes need not wait
        for it, and from this call on they must not be lost by it.

        Args:
            leader_epoch: under which the replica caught up.
            broker_epoch: under which its process said so (its ``broker_epoch``): another process begins anew.

        Raises:
            NotNoted: it does not fit the newest image. Nothing was changed.
        """
        known = self._image.cluster.brokers.get(broker_id)
        if known is None or known.epoch != broker_epoch:
            now = "is not registered" if known is None else f"is registered under epoch {known.epoch}"
            why = f"it was said under epoch {broker_epoch} of the broker, which {now}"
            raise NotNoted(ErrorCode.STALE_BROKER_EPOCH, self._named(topic_id, partition, broker_id), why)
        self._note(topic_id, partition, leader_epoch, broker_id, ALWAYS)
        key = PartitionKey(topic_id, partition)
        self._leaving.pop((key, broker_id), None)
        if broker_id not in self.state_of(topic_id, partition).isr:
            self._claims.said(key, leader_epoch, broker_id, broker_epoch)

    def fell_behind(self, topic_id: Uuid, partition: int, leader_epoch: int, broker_id: int) -> None:
        """A replica does not keep up: its leader here asks for an ISR without it.

        For as long as it is in ``maximal_isr`` nothing may be acknowledged that it does not have.

        Raises:
            NotNoted: it does not fit the newest image. Nothing was changed.
        """
        self._note(topic_id, partition, leader_epoch, broker_id, AS_BEFORE)  # what does not fit is refused here
        key = PartitionKey(topic_id, partition)
        if self._claims.taken_back(key, broker_id):
            self._note(topic_id, partition, leader_epoch, broker_id, UNKNOWN)
        else:
            # What is asked for goes on to be asked for until it is granted or refused: then nothing is under way.
            self._leaving[key, broker_id] = leader_epoch

    def maximal_isr(self, topic_id: Uuid, partition: int) -> frozenset[int]:
        """The replicas that may be elected to lead: the ISR of the newest image, and those that may have entered it
        since.

        What a leader here acknowledges all of them must have, itself included (Kafka's ``maximalIsr``).

        Raises:
            NotNoted: UNKNOWN_TOPIC_ID.
        """
        key = PartitionKey(topic_id, partition)
        return self._claims.members(key).union(self.state_of(topic_id, partition).isr)

    def state_of(self, topic_id: Uuid, partition: int) -> Partition:
        """The state of a partition in the newest image.

        Raises:
            NotNoted: UNKNOWN_TOPIC_ID.
        """
        row = self._image.partitions.row(topic_id, partition)
        if row is None:
            why = "the newest image has no such partition"
            raise NotNoted(ErrorCode.UNKNOWN_TOPIC_ID, self._named(topic_id, partition), why)
        return self._image.partitions.partition(row)

    def may_delete(self, broker_id: int, topic_id: Uuid, partition: int) -> bool:
        """Whether what a broker here has of a partition may go for good.

        It may where the newest image has no such replica, and no run of this broker has seen a newer one.

        To be asked of what a run before left on disk; of what is dropped ``on_deletable`` tells.
        """
        known, epoch = self._image.cluster.brokers.get(broker_id), self.broker_epoch(broker_id)
        # Its registration was written after all that a run before can have seen.
        is_newest = self._offset >= self._newest_offset and known is not None and known.epoch == epoch
        return is_newest and not self._has_replica(broker_id, topic_id, partition)

    def ready(self, broker_id: int) -> None:
        """A broker here can serve: it may be unfenced. Of use with ``holds_unfencing`` and after ``resign``."""
        self._can_serve[broker_id] = True
        self._let_in(broker_id)

    def resign(self, broker_id: int) -> None:
        """A broker here can serve no more: it asks to be fenced, so that others lead, until ``ready`` is called."""
        self._can_serve[broker_id] = False
        if self.station is not None:
            self.station.hold_unfencing(broker_id)

    # --- what a process asks -------------------------------------------------------------------------

    def begin(self, station: Station) -> None:
        super().begin(station)
        if self._has_begun:  # with another worker: that its brokers could serve says nothing of these
            self._can_serve.clear()
            self._dropped.clear()
            self._newest_offset = -1
        self._has_begun = True
        self._requests = IsrRequests(
            station.rpc, self._book, station.epochs, station.now_ms, self._changed.set, self._claims
        )

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self._take(image)
        self._changed.set()
        changes = {broker_id: delta.local_changes(broker_id) for broker_id in sorted(self._played)}
        for broker_id, changed in changes.items():
            for replica in changed.stopped():
                self._dropped[broker_id, PartitionKey(replica.topic_id, replica.partition_id)] = replica
                self.drop(broker_id, replica)
        self._tell_deletable()
        for broker_id, changed in changes.items():
            for replica in changed.led():
                self.lead(broker_id, replica)
            for replica in changed.followed():
                self.follow(broker_id, replica)

    def report(self) -> ReplicaReport:
        return ReplicaReport(NOTICE, True, self._book.outside_count, None, self._requests.counters)

    async def run(self) -> None:
        station = self.station
        assert station is not None
        for broker_id in self._played:
            self._let_in(broker_id)
        async with OwnTasks() as tasks:
            while True:
                self._changed.clear()
                if station.played() != self._played:
                    self._take(self._image)
                now_ms = station.now_ms()
                self._book.expire(now_ms)
                self._let_leave()
                self._requests.send_due(tasks, self._played)
                await self._wait(self._book.next_due_after(now_ms) - now_ms)

    def _take(self, image: MetadataImage) -> None:
        assert self.station is not None
        self._image, self._played = image, self.station.played()
        self._newest_offset = max(self._newest_offset, self._offset)
        self._book.update(image, self._played, self.station.now_ms())
        self._claims.update(image)

    def _tell_deletable(self) -> None:
        for (broker_id, key), replica in list(self._dropped.items()):
            if self.may_delete(broker_id, *key):
                self.on_deletable(broker_id, replica)
            elif not self._has_replica(broker_id, *key):
                continue
            del self._dropped[broker_id, key]

    def _has_replica(self, broker_id: int, topic_id: Uuid, partition: int) -> bool:
        row = self._image.partitions.row(topic_id, partition)
        return row is not None and broker_id in self._image.partitions.partition(row).replicas

    @property
    def _offset(self) -> int:
        return self._image.provenance.last_contained_offset

    def _let_leave(self) -> None:
        for (key, broker_id), leader_epoch in list(self._leaving.items()):
            if self._claims.taken_back(key, broker_id):
                del self._leaving[key, broker_id]
                with suppress(NotNoted):  # it is led elsewhere by now
                    self._note(*key, leader_epoch, broker_id, UNKNOWN)

    def _let_in(self, broker_id: int) -> None:
        if self.station is not None and self._can_serve.get(broker_id, not self._holds_unfencing):
            self.station.ready_to_unfence(broker_id)

    def _note(self, topic_id: Uuid, partition: int, leader_epoch: int, broker_id: int, caught_up_ms: float) -> None:
        state = self.state_of(topic_id, partition)  # there is none that does not fit the columns of the book
        codes = self._book.note(
            np.frombuffer(topic_id, np.uint8).reshape(1, UUID_BYTES),
            _one(partition),
            _one(leader_epoch),
            _one(broker_id),
            np.array([caught_up_ms]),
            np.zeros(1, np.bool_),
        )
        if codes[0] != ErrorCode.NONE:
            code = ErrorCode(int(codes[0]))
            why = _why_not(code, state, leader_epoch)
            raise NotNoted(code, self._named(topic_id, partition, broker_id), why)
        self._changed.set()

    def _named(self, topic_id: Uuid, partition: int, broker_id: int | None = None) -> str:
        """A partition, or a replica of it, as people call it; a topic that is not known by its id."""
        topic = self._image.topics.by_id.get(topic_id)
        name = f"topic {topic_id.hex()}" if topic is None else topic.name
        return f"{name}-{partition}" if broker_id is None else f"{name}-{partition}, replica {broker_id}"


def _why_not(code: ErrorCode, state: Partition, leader_epoch: int) -> str:
    """The sentence for a code of the book."""
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return f"its leader is {state.leader} and its replicas {list(state.replicas)}: no follower of a leader here"
    now = f"it was said under leader epoch {leader_epoch}, the newest image has {state.leader_epoch}"
    return now if code == ErrorCode.FENCED_LEADER_EPOCH else f"{now}: say it again when an image has yours"


def _one(number: int) -> NDArray[np.int32]:
    """int32[1]; a number that no id or epoch can have becomes the greatest or the least, which none has either."""
    return np.array([min(max(number, _NUMBERS.min), _NUMBERS.max)], np.int32)
