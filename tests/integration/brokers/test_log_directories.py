"""Log directories that fail or are cordoned, over real sockets: from a heartbeat to who leads and where replicas go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

from quorate.broker.lifecycle.identity import SUPPORTED_FEATURES
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    CreatableTopic,
    CreateTopicsRequest,
    DescribedPartition,
    ReplicaAssignment,
    SupportedFeature,
)
from quorate.controller.protocol.directories import DirectoryReplicas, ReplicaInDirectory, TopicInDirectory
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from tests.integration.http_stage import CLUSTER_ID, Stage, stage
from tests.unit.controller.small_cluster import registration, uuid
from tests.waiting import eventually

FEATURES = [
    SupportedFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
    for name, lowest, highest in SUPPORTED_FEATURES
]


def directory(broker: int, nth: int) -> Uuid:
    return uuid(2, broker, nth)


@dataclass
class Brokers:
    """Brokers 1 to 3 with two directories each, spoken for by hand, through the standby."""

    built: Stage
    client: ControllerClient
    epochs: dict[int, int]

    async def register(self, broker: int, incarnation: int = 0) -> None:
        request = registration(
            broker, incarnation, cluster_id=CLUSTER_ID, log_dirs=[directory(broker, nth) for nth in (0, 1)],
            previous_broker_epoch=self.epochs.get(broker, -1), features=FEATURES,
        )  # fmt: skip
        self.epochs[broker] = (await self.client.register_broker(request)).broker_epoch
        await self.heartbeat(broker)

    async def heartbeat(
        self, broker: int, *, offline: Sequence[Uuid] = (), cordoned: Sequence[Uuid] | None = None
    ) -> None:
        await self.client.broker_heartbeat(
            BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=self.epochs[broker],
                current_metadata_offset=self.built.quorum.committed,
                offline_log_dirs=list(offline),
                cordoned_log_dirs=None if cordoned is None else list(cordoned),
            )
        )

    async def end_sessions_after(self, timeout_ms: int) -> None:
        """The other controller becomes active, with short sessions."""
        role = self.built.members[2].role
        role.config = replace(role.config, session_timeout_ms=timeout_ms)
        await self.built.elect(2)

    async def create(self, name: str, *assignments: list[int]) -> Uuid:
        """A topic with these replicas for each partition."""
        replicas = [ReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(assignments)]
        topic = CreatableTopic(name=name, assignments=replicas)
        (result,) = (await self.client.create_topics(CreateTopicsRequest(topics=[topic]))).topics
        assert result.topic_id is not None, result
        return result.topic_id

    async def assign(self, broker: int, topic_id: Uuid, partitions: Sequence[int], nth: int) -> None:
        """The broker says that its replicas of these partitions lie in its nth directory."""
        named = [ReplicaInDirectory(partition_index=number) for number in partitions]
        place = DirectoryReplicas(
            id=directory(broker, nth), topics=[TopicInDirectory(topic_id=topic_id, partitions=named)]
        )
        request = AssignReplicasToDirsRequest(broker_id=broker, broker_epoch=self.epochs[broker], directories=[place])
        reply = await self.client.assign_replicas_to_dirs(request)
        assert {p.error_code for d in reply.directories for t in d.topics for p in t.partitions} == {ErrorCode.NONE}

    async def partitions(self, name: str) -> list[DescribedPartition]:
        return (await self.client.describe_topic(name, is_linearizable=True)).topic.partitions


@pytest.fixture
async def at_hand() -> AsyncIterator[Brokers]:
    """Two controllers, and the brokers registered and unfenced."""
    async with stage(2) as built, ControllerClient([built.urls[1]]) as client:
        made = Brokers(built, client, {})
        for broker in (1, 2, 3):
            await made.register(broker)
        yield made


async def test_directory_fails_its_leaders_move_and_others_stay(at_hand: Brokers) -> None:
    topic_id = await at_hand.create("t", [1, 2, 3], [1, 2, 3], [2, 1, 3])
    await at_hand.assign(1, topic_id, [0, 2], nth=0)
    await at_hand.assign(1, topic_id, [1], nth=1)
    await at_hand.heartbeat(1, offline=[directory(1, 0)])
    lost, kept, followed = await at_hand.partitions("t")
    assert (lost.leader_id, lost.isr_nodes, lost.offline_replicas) == (2, [2, 3], [1])
    assert lost.replica_states == ["OfflineReplica", "OnlineReplica", "OnlineReplica"]
    assert (kept.leader_id, kept.isr_nodes, kept.replica_states) == (1, [1, 2, 3], ["OnlineReplica"] * 3)
    assert (followed.leader_id, followed.isr_nodes, followed.offline_replicas) == (2, [2, 3], [1])
    described = (await at_hand.client.describe_brokers()).brokers
    assert described[0].directories == [directory(1, 1)]
    assert described[0].state == "active", "a broker with another directory lives on"


async def test_last_directory_of_a_partition_fails_and_the_broker_comes_back(at_hand: Brokers) -> None:
    topic_id = await at_hand.create("single", [1])
    await at_hand.assign(1, topic_id, [0], nth=0)
    await at_hand.heartbeat(1, offline=[directory(1, 0)])
    (partition,) = await at_hand.partitions("single")
    assert (partition.state, partition.leader_id) == ("OfflinePartition", -1)
    assert partition.replica_states == ["OfflineReplica"]
    before = at_hand.built.quorum.log_end_offset
    await at_hand.heartbeat(1, offline=[directory(1, 0)])
    assert at_hand.built.quorum.log_end_offset == before, "said again, it is no news"
    await at_hand.end_sessions_after(200)
    before_epoch = at_hand.epochs[1]

    async def restarted() -> bool:
        with suppress(ApiError):  # DUPLICATE_BROKER_REGISTRATION until the session has ended
            await at_hand.register(1, incarnation=1)
        return at_hand.epochs[1] != before_epoch

    await eventually(restarted, "broker 1 is registered with both directories, after the session before")
    (partition,) = await at_hand.partitions("single")
    assert (partition.state, partition.leader_id) == ("OnlinePartition", 1)
    assert partition.replica_states == ["OnlineReplica"]


async def test_replica_assigned_to_a_directory_that_has_failed_goes_out_of_sync(at_hand: Brokers) -> None:
    topic_id = await at_hand.create("t", [1, 2, 3])
    await at_hand.heartbeat(1, offline=[directory(1, 0)])
    assert (await at_hand.partitions("t"))[0].leader_id == 1
    await at_hand.assign(1, topic_id, [0], nth=0)
    (partition,) = await at_hand.partitions("t")
    assert (partition.leader_id, partition.isr_nodes, partition.offline_replicas) == (2, [2, 3], [1])


async def test_broker_with_all_directories_cordoned_gets_no_new_replicas_and_keeps_what_it_has(
    at_hand: Brokers,
) -> None:
    await at_hand.create("before", [1, 2])
    await at_hand.heartbeat(1, cordoned=[directory(1, 0), directory(1, 1)])
    described = (await at_hand.client.describe_brokers()).brokers
    assert described[0].cordoned_directories == [directory(1, 0), directory(1, 1)]
    placed = CreateTopicsRequest(topics=[CreatableTopic(name="placed", num_partitions=12, replication_factor=2)])
    await at_hand.client.create_topics(placed)
    assert {id_ for p in await at_hand.partitions("placed") for id_ in p.replica_nodes} == {2, 3}
    (partition,) = await at_hand.partitions("before")
    assert (partition.leader_id, partition.isr_nodes) == (1, [1, 2])
    wide = CreateTopicsRequest(topics=[CreatableTopic(name="wide", num_partitions=1, replication_factor=3)])
    with pytest.raises(ApiError, match="cordoned") as refused:
        await at_hand.client.create_topics(wide)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    await at_hand.heartbeat(1, cordoned=[directory(1, 0)])
    (made,) = (await at_hand.client.create_topics(wide)).topics
    assert made.error_code is ErrorCode.NONE
