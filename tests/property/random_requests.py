"""Random requests to a real controller over a log in memory, under virtual time: as operators and brokers mix them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, ClassVar

from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.process.composition import Machine, compose
from quorate.controller.protocol import (
    AlterPartitionData,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionTopic,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectionPartitions,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
    UnregisterBrokerRequest,
)
from quorate.controller.protocol import BrokerState as IsrMember
from quorate.controller.protocol.directories import DirectoryReplicas, ReplicaInDirectory, TopicInDirectory
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.records.records import FeatureLevelRecord, VersionedRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config, controller_limits, role_settings
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import CLUSTER_ID, registration, uuid

BROKERS = range(6)
SESSION_MS = 9_000
#: No real time passes while a request is out; this is never reached.
TIMEOUT_MS = 60_000.0


class RandomRequests:
    """A controller that leads, and everybody who asks something of it. All choices follow from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scheduler = ManualScheduler()
        self.faults = RecordingFaults()
        #: Every committed state, in order.
        self.images: list[MetadataImage] = []
        self._topics_made = 0
        self._incarnations = 0
        bootstrap = [FeatureLevelRecord("metadata.version", 30)]
        if self.random.random() < 0.7:
            bootstrap.append(FeatureLevelRecord("eligible.leader.replicas.version", 1))
        config = controller_config(node_id=3000, cluster_id=CLUSTER_ID, session_timeout_ms=SESSION_MS)
        records = tuple(VersionedRecord(record, 0) for record in bootstrap)
        log = LogInMemory(self.scheduler)
        machine = Machine(self.scheduler, self.faults, JavaRandom(seed), self._new_topic_id)
        self.controller, _, self.operations = compose(
            config, role_settings(), controller_limits(), records, log, machine
        )
        log.controllers = (self.controller,)
        self.controller.on_stable = lambda: self.images.append(self.controller.stable)
        log.leader_id = 3000
        self.controller.on_leader_change(3000, 1)
        self.scheduler.run()

    async def run(self, requests: int) -> None:
        """Brokers that start, and then so many requests, one after the other; refusals are answers too."""
        for broker in BROKERS:
            await self._register(broker)
            await self._heartbeat(broker)
        for _ in range(requests):
            (request,) = self.random.choices(list(self._kinds), list(self._kinds.values()))
            await request(self)
        assert not self.faults.seen

    async def _ask(self, request: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(request)
        while not task.done():
            await asyncio.sleep(0)
            self.scheduler.run()
        if task.exception() is not None and not isinstance(task.exception(), ApiError):
            raise task.exception() or AssertionError

    # --- what there is -------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        return self.controller.stable

    def _new_topic_id(self) -> bytes:
        self._topics_made += 1
        return uuid(3, self._topics_made)

    def _some_topic(self) -> Topic | None:
        topics = sorted(self.image.topics.by_id.values(), key=lambda topic: topic.id)
        return self.random.choice(topics) if topics else None

    def _some_partition(self) -> tuple[Topic, int, Partition] | None:
        topic = self._some_topic()
        found = [] if topic is None else list(self.image.partitions.partitions_of(topic.id))
        return (topic, *self.random.choice(found)) if topic is not None and found else None

    def _epoch(self, broker: int) -> int:
        known = self.image.cluster.brokers.get(broker)
        return -1 if known is None else known.epoch

    def _brokers(self, most: int) -> list[int]:
        return self.random.sample(BROKERS, self.random.randint(1, most))

    # --- what is asked -------------------------------------------------------------------------------

    async def _register(self, broker: int) -> None:
        self._incarnations += 1
        directories = [uuid(2, broker, nth) for nth in range(2)]
        previous = self._epoch(broker) if self.random.random() < 0.5 else -1
        request = registration(broker, self._incarnations, log_dirs=directories, previous_broker_epoch=previous)
        await self._ask(self.operations.register_broker(request, TIMEOUT_MS))

    async def _heartbeat(self, broker: int, **wishes: Any) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self._epoch(broker),
            current_metadata_offset=self.controller.applied_offset,
            **wishes,
        )
        await self._ask(self.operations.broker_heartbeat(request, TIMEOUT_MS))

    async def _some_registers(self) -> None:
        await self._register(self.random.choice(BROKERS))

    async def _some_live(self) -> None:
        for broker in self._brokers(len(BROKERS)):
            await self._heartbeat(broker)

    async def _some_wants_something(self) -> None:
        broker = self.random.choice(BROKERS)
        wish: dict[str, Any] = self.random.choice(
            [
                {"want_fence": True},
                {"want_shut_down": True},
                {"offline_log_dirs": [uuid(2, broker, self.random.randrange(2))]},
                {"cordoned_log_dirs": [uuid(2, broker, 0)]},
            ]
        )
        await self._heartbeat(broker, **wish)

    async def _unregister(self) -> None:
        request = UnregisterBrokerRequest(broker_id=self.random.choice(BROKERS))
        await self._ask(self.operations.unregister_broker(request, TIMEOUT_MS))

    async def _time_passes(self) -> None:
        for broker in self._brokers(len(BROKERS)):
            await self._heartbeat(broker)
        self.scheduler.advance(SESSION_MS * 0.7)

    async def _create_topic(self) -> None:
        topic = CreatableTopic(
            name=f"t{self.random.randrange(5)}",
            num_partitions=self.random.randint(1, 4),
            replication_factor=self.random.randint(1, 4),
        )
        await self._ask(self.operations.create_topics(CreateTopicsRequest(topics=[topic]), TIMEOUT_MS))

    async def _grow_topic(self) -> None:
        topic = self._some_topic()
        if topic is not None:
            count = len(self.image.partitions.rows_of(topic.id)) + 1
            request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic.name, count=count)])
            await self._ask(self.operations.create_partitions(request, TIMEOUT_MS))

    async def _delete_topic(self) -> None:
        topic = self._some_topic()
        if topic is not None:
            await self._ask(self.operations.delete_topics(DeleteTopicsRequest(topic_ids=[topic.id]), TIMEOUT_MS))

    async def _alter_isr(self) -> None:
        found = self._some_partition()
        if found is None or not found[2].has_leader:
            return
        topic, number, partition = found
        others = [id_ for id_ in partition.replicas if id_ != partition.leader and self.random.random() < 0.7]
        data = AlterPartitionData(
            partition_index=number,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[IsrMember(broker_id=id_) for id_ in (partition.leader, *others)],
        )
        request = AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=self._epoch(partition.leader),
            topics=[AlterPartitionTopic(topic_id=topic.id, partitions=[data])],
        )
        await self._ask(self.operations.alter_partition(request, TIMEOUT_MS))

    async def _reassign(self) -> None:
        found = self._some_partition()
        if found is None:
            return
        topic, number, _ = found
        target = None if self.random.random() < 0.3 else self._brokers(4)
        moved = ReassignableTopic(
            name=topic.name, partitions=[ReassignablePartition(partition_index=number, replicas=target)]
        )
        request = AlterPartitionReassignmentsRequest(topics=[moved])
        await self._ask(self.operations.alter_partition_reassignments(request, TIMEOUT_MS))

    async def _elect(self) -> None:
        found = self._some_partition()
        if found is None:
            return
        kind = self.random.choice(["PREFERRED", "UNCLEAN"])
        wanted = [ElectionPartitions(topic=found[0].name, partitions=[found[1]])]
        request = ElectLeadersRequest.model_validate(
            {"election_type": kind, "topic_partitions": [one.model_dump() for one in wanted]}
        )
        await self._ask(self.operations.elect_leaders(request, TIMEOUT_MS))

    async def _assign_directory(self) -> None:
        found = self._some_partition()
        if found is None:
            return
        topic, number, partition = found
        broker = self.random.choice(partition.replicas)
        place = DirectoryReplicas(
            id=uuid(2, broker, self.random.randrange(3)),
            topics=[TopicInDirectory(topic_id=topic.id, partitions=[ReplicaInDirectory(partition_index=number)])],
        )
        request = AssignReplicasToDirsRequest(broker_id=broker, broker_epoch=self._epoch(broker), directories=[place])
        await self._ask(self.operations.assign_replicas_to_dirs(request, TIMEOUT_MS))

    #: Kind -> how often, relative to the others.
    _kinds: ClassVar[dict[Callable[[RandomRequests], Awaitable[None]], int]] = {
        _some_registers: 3,
        _some_live: 8,
        _some_wants_something: 6,
        _unregister: 1,
        _time_passes: 3,
        _create_topic: 6,
        _grow_topic: 2,
        _delete_topic: 2,
        _alter_isr: 14,
        _reassign: 8,
        _elect: 4,
        _assign_directory: 4,
    }
