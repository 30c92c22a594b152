"""Random clusters, and the production controller on one of them: what really happens when brokers stop.

States are made record by record, not by decisions: also ones that no decision of today leaves behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

from quorate.controller.engine.head_counters import Elected
from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.process.composition import Machine, compose
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    ReassignableTopic,
    SupportedFeature,
)
from quorate.controller.protocol.partitions import AlterPartitionData, AlterPartitionTopic, BrokerState
from quorate.metadata_log.batches.batch import data_batch
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import DIRECTORY_LOST
from quorate.metadata_log.records.records import (
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config, controller_limits, role_settings
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import uuid

T = TypeVar("T")

NODE_ID = 9
CONFIG = controller_config(node_id=NODE_ID, cluster_id="c", session_timeout_ms=9_000)
_HEARTBEAT_MS = 2_000.0
_FEATURES = (BrokerFeature("metadata.version", 7, 30), BrokerFeature("eligible.leader.replicas.version", 0, 1))


class RandomState:
    """The records of a random cluster: up to six brokers, some down, and partitions in any state that rules allow."""

    def __init__(self, seed: int) -> None:
        self._chance = chance = Random(seed)
        self.has_elr = chance.random() < 0.6
        self.brokers = list(range(1, chance.randint(2, 7)))
        self.fenced = {broker for broker in self.brokers if chance.random() < 0.25}
        self.leaving = {broker for broker in self.fenced if chance.random() < 0.5}
        self.records: list[tuple[Record, int]] = [(FeatureLevelRecord("metadata.version", 30), 0)]
        if self.has_elr:
            self.records.append((FeatureLevelRecord("eligible.leader.replicas.version", 1), 0))
        self.records += [(self._registration(broker), 4) for broker in self.brokers]
        if chance.random() < 0.5:
            self._configure(4, "", "min.insync.replicas", str(chance.randint(1, 3)))
        for number in range(chance.randint(1, 4)):
            self._add_topic(number)

    def _registration(self, broker: int) -> RegisterBrokerRecord:
        return RegisterBrokerRecord(
            broker_id=broker,
            broker_epoch=broker,
            incarnation_id=uuid(1, broker),
            features=_FEATURES,
            rack=f"rack-{broker % 3}",
            fenced=broker in self.fenced,
            in_controlled_shutdown=broker in self.leaving,
            log_dirs=(uuid(2, broker, 0), uuid(2, broker, 1)),
        )

    def _configure(self, kind: int, resource: str, name: str, value: str) -> None:
        self.records.append((ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value), 0))

    def _add_topic(self, number: int) -> None:
        chance, topic_id, name = self._chance, uuid(3, number), f"topic-{number}"
        self.records.append((TopicRecord(name, topic_id), 0))
        # With ELRs the cluster's own minimum holds for all.
        if chance.random() < 0.5:
            self._configure(2, name, "min.insync.replicas", str(chance.randint(1, 3)))
        if chance.random() < 0.3:
            self._configure(2, name, "unclean.leader.election.enable", "true")
        for partition_id in range(chance.randint(1, 8)):
            self.records.append((self._partition(topic_id, partition_id), 2))

    def _partition(self, topic_id: bytes, partition_id: int) -> PartitionRecord:
        chance = self._chance
        replicas = chance.sample(self.brokers, chance.randint(1, min(4, len(self.brokers))))
        alive = [broker for broker in replicas if broker not in self.fenced]
        isr = chance.sample(alive, chance.randint(1, len(alive))) if alive and chance.random() < 0.9 else []
        leader = chance.choice(isr) if isr else -1
        out = [broker for broker in replicas if broker not in isr]
        elr, last_known = [], []
        if self.has_elr:
            elr = chance.sample(out, chance.randint(0, len(out)))
            last_known = chance.sample(out, 1) if not isr and not elr and out and chance.random() < 0.7 else []
        elif not isr:
            isr = chance.sample(out, 1)  # the last one of them stays
        adding = [broker for broker in replicas[1:] if chance.random() < 0.1]
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=tuple(replicas),
            isr=tuple(isr),
            adding_replicas=tuple(adding),
            removing_replicas=tuple(broker for broker in replicas if broker not in adding and chance.random() < 0.05),
            leader=leader,
            leader_recovery_state=int(chance.random() < 0.1),
            leader_epoch=chance.randint(0, 9),
            partition_epoch=chance.randint(0, 9),
            directories=tuple(self._directory(broker, is_leader=broker == leader) for broker in replicas),
            eligible_leader_replicas=tuple(elr) or None,
            last_known_elr=tuple(last_known) or None,
        )

    def _directory(self, broker: int, *, is_leader: bool) -> bytes:
        is_lost = not is_leader and self._chance.random() < 0.05
        return DIRECTORY_LOST if is_lost else uuid(2, broker, self._chance.randint(0, 1))


class RealController:
    """The production controller, active on a state, under virtual time; its brokers are played here."""

    def __init__(self, records: list[tuple[Record, int]]) -> None:
        self._scheduler = ManualScheduler()
        self._log = LogInMemory(self._scheduler)
        machine = Machine(self._scheduler, RecordingFaults(), JavaRandom(1), lambda: uuid(4, 0))
        composed = compose(CONFIG, role_settings(), controller_limits(), (), self._log, machine)
        self._controller, _, self._operations = composed
        self._log.controllers = (self._controller,)
        self._log.write(1, data_batch(records, 0))
        self._scheduler.run()
        self._log.leader_id = NODE_ID
        self._controller.on_leader_change(NODE_ID, 2)
        self._scheduler.run()

    @property
    def image(self) -> MetadataImage:
        return self._controller.stable

    @property
    def elected(self) -> Elected:
        """As it counted them itself."""
        counts = self._controller.head_watch.counts
        unclean, eligible = counts.unclean_elections, counts.elections_from_eligible
        return Elected(sum(counts.elections.values()), unclean, eligible, counts.last_known_elections)

    async def stop(self, broker_ids: Sequence[int]) -> None:
        """Each asks to be shut down until it is let go; the others speak, too, so that they have applied it.

        One that is fenced is down already, and says nothing.
        """
        for broker in broker_ids:
            if self.image.cluster.brokers[broker].is_fenced:
                continue
            while not (await self._say(broker, want_shut_down=True)).should_shut_down:
                for other in self._speaking():
                    if other != broker:
                        await self._say(other)

    async def crash(self, broker_ids: Collection[int]) -> None:
        """They are silent, and the others speak, until every session of theirs is over."""
        for _ in range(int(2 * CONFIG.session_timeout_ms / _HEARTBEAT_MS)):
            self._scheduler.advance(_HEARTBEAT_MS)
            for other in self._speaking():
                if other not in broker_ids:
                    await self._say(other)

    async def start(self, broker_id: int) -> None:
        """A new process registers once the session of the one before is over, and is unfenced."""
        await self.crash([broker_id])
        known = self.image.cluster.brokers[broker_id]
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CONFIG.cluster_id,
            incarnation_id=uuid(1, broker_id, known.epoch),
            features=[
                SupportedFeature(
                    name=one.name,
                    min_supported_version=one.min_supported_version,
                    max_supported_version=one.max_supported_version,
                )
                for one in known.supported_features
            ],
            rack=known.rack,
            log_dirs=list(known.directories) or [uuid(5, broker_id)],
            previous_broker_epoch=known.epoch if known.in_controlled_shutdown else -1,
        )
        await self._answered(self._operations.register_broker(request, 1_000.0))
        assert not (await self._say(broker_id)).is_fenced

    async def lose_directory(self, broker_id: int, directory: bytes) -> None:
        await self._say(broker_id, lost=[directory])

    async def reassign(self, topics: list[ReassignableTopic]) -> list[ErrorCode]:
        """The outcome for each partition in it."""
        request = AlterPartitionReassignmentsRequest(topics=topics)
        reply = await self._answered(self._operations.alter_partition_reassignments(request, 1_000.0))
        return [partition.error_code for topic in reply.responses for partition in topic.partitions]

    async def catch_up(self) -> None:
        """Leader after leader asks for every replica whose broker runs and has its directory, in one request."""
        for leader in sorted(self.image.cluster.brokers):
            topics = []
            for topic in self.image.topics.by_id.values():
                asked = [
                    self._asked(number, partition, isr)
                    for number, partition in self.image.partitions.partitions_of(topic.id)
                    if partition.leader == leader
                    and ((isr := self._grown(partition)) != [*partition.isr] or partition.leader_recovery_state)
                ]
                if asked:
                    topics.append(AlterPartitionTopic(topic_id=topic.id, partitions=asked))
            epoch = self.image.cluster.brokers[leader].epoch
            request = AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=topics)
            if topics:
                await self._answered(self._operations.alter_partition(request, 1_000.0))

    def _grown(self, partition: Partition) -> list[int]:
        return [*partition.isr, *(one for one in self._able(partition) if one not in partition.isr)]

    def _able(self, partition: Partition) -> list[int]:
        brokers = self.image.cluster.brokers
        places = zip(partition.replicas, partition.directories, strict=True)
        return [one for one, directory in places if brokers[one].is_active and brokers[one].has_online(directory)]

    def _asked(self, number: int, partition: Partition, isr: list[int]) -> AlterPartitionData:
        return AlterPartitionData(
            partition_index=number,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=one) for one in isr],
        )

    def _speaking(self) -> list[int]:
        return [broker.id for broker in self.image.cluster.brokers.values() if not broker.is_fenced]

    async def _say(
        self, broker_id: int, *, want_shut_down: bool = False, lost: Sequence[bytes] = ()
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.image.cluster.brokers[broker_id].epoch,
            current_metadata_offset=self.image.provenance.last_contained_offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(lost),
        )
        return await self._answered(self._operations.broker_heartbeat(request, 1_000.0))

    async def _answered(self, asking: Coroutine[Any, Any, T]) -> T:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(asking)
            while not asked.done():
                await asyncio.sleep(0)
                self._scheduler.run()
        return asked.result()
