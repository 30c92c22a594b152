"""The client: tries the controllers in turn, and never repeats what may have been carried out."""

from __future__ import annotations

import asyncio

import msgpack
import numpy as np
import pytest
from aiohttp import web

from quorate.controller.api.content import MSGPACK, pack
from quorate.controller.api.errors import FeedOutOfRange
from quorate.controller.client.attempts import Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.controller.client.targets import InvalidUrl, controller_url
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DirectoryReplicas,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaInDirectory,
    TopicInDirectory,
)
from quorate.controller.protocol.altered_partitions import AlterPartitionColumns
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown
from tests.integration.http_servers import closed_port, frozen_server, server
from tests.integration.http_stage import stage
from tests.waiting import within


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2) for name in names])


@pytest.mark.parametrize(
    ("text", "url"),
    [("127.0.0.1:80", "http://127.0.0.1:80"), (" http://a:80/ ", "http://a:80"), ("[::1]:80", "http://[::1]:80")],
)
def test_client_takes_addresses_and_urls(text: str, url: str) -> None:
    assert controller_url(text) == url


@pytest.mark.parametrize("text", ["", "host", "http://host", "ftp://host:1", "http://h:1/path", "http://u@h:1", "h:x"])
def test_client_refuses_what_names_no_controller(text: str) -> None:
    with pytest.raises(InvalidUrl):
        controller_url(text)


async def test_client_does_all_that_the_api_can() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        epoch = await s.register(1, 11)
        await s.register(1, 12)
        created = await client.create_topics(topics("foo", "bar"))
        assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE] * 2
        assert [topic.name for topic in (await client.list_topics()).topics] == ["bar", "foo"]
        described = await client.describe_topic("foo", is_linearizable=True)
        assert len(described.topic.partitions) == 2
        assert (await client.describe_cluster()).topics == 2
        assert (await client.describe_quorum()).active_id == 1
        assert [broker.id for broker in (await client.describe_brokers()).brokers] == [11, 12]
        assert (await client.status()).verdict == "healthy"
        move = ReassignableTopic(
            name="foo", partitions=[ReassignablePartition(partition_index=n, replicas=[11, 12]) for n in (0, 1)]
        )
        await client.alter_partition_reassignments(AlterPartitionReassignmentsRequest(topics=[move]))
        assert [topic.name for topic in (await client.list_partition_reassignments()).topics] == ["foo"]
        heartbeat = BrokerHeartbeatRequest(broker_id=11, broker_epoch=epoch, current_metadata_offset=0)
        assert (await client.broker_heartbeat(heartbeat)).is_fenced is False
        await client.alter_partition(AlterPartitionRequest(broker_id=11, broker_epoch=epoch, topics=[]))
        topic_id = created.topics[1].topic_id
        assert topic_id is not None
        place = DirectoryReplicas(
            id=topic_id,
            topics=[TopicInDirectory(topic_id=topic_id, partitions=[ReplicaInDirectory(partition_index=9)])],
        )
        request = AssignReplicasToDirsRequest(broker_id=11, broker_epoch=epoch, directories=[place])
        (assigned,) = (await client.assign_replicas_to_dirs(request)).directories
        assert assigned.topics[0].partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await client.delete_topics(DeleteTopicsRequest(topic_ids=[topic_id]))).responses[0].name == "bar"
        assert (await client.delete_topic("foo")).responses[0].name == "foo"
        await client.unregister_broker(12)
        assert [broker.id for broker in (await client.describe_brokers()).brokers] == [11]


async def test_client_raises_the_errors_of_the_api() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        with pytest.raises(ApiError) as refused:
            await client.describe_topic("a/b?c")
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "a/b?c" in refused.value.message
        with pytest.raises(ApiError) as refused:
            await client.create_topics(topics("a/b"))
        assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_client_sends_isr_changes_of_many_partitions_as_columns() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        epoch = await s.register(1, 11)
        created = (await client.create_topics(topics("foo"))).topics[0]
        assert created.topic_id is not None
        before = (await client.describe_topic("foo")).topic.partitions
        columns = AlterPartitionColumns(
            topic_ids=np.frombuffer(created.topic_id * 3, np.uint8).reshape(3, 16),
            partition_ids=np.array([0, 1, 7], np.int32),
            leader_epochs=np.array([p.leader_epoch for p in before] + [0], np.int32),
            partition_epochs=np.array([p.partition_epoch for p in before] + [0], np.int32),
            leader_recovery_states=np.zeros(3, np.int8),
            new_isr=np.full((3, 1), 11, np.int32),
            new_isr_epochs=np.full((3, 1), epoch, np.int64),
        )
        altered = await client.alter_partition_columns(11, epoch, columns)
        assert altered.error_codes.tolist() == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert altered.leaders.tolist()[:2] == [11, 11]
        with pytest.raises(ApiError) as refused:
            await client.alter_partition_columns(11, epoch + 1, columns)
        assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_client_goes_on_with_the_next_controller_when_one_is_gone() -> None:
    async with stage() as s, closed_port() as gone:
        await s.register(1, 11)
        async with ControllerClient([gone, *s.urls]) as client:
            await client.create_topics(topics("foo"))
            assert len((await client.list_topics()).topics) == 1


async def test_client_gives_a_frozen_controller_its_share_of_the_time_only() -> None:
    async with (
        stage() as s,
        frozen_server() as frozen,
        ControllerClient([frozen, s.urls[0]], timeout_ms=2_000) as client,
    ):
        with within(1.9, "the frozen one had all of the time"):
            assert (await client.list_topics()).topics == []
        with within(0.9, "it did not go on with the one that served"):
            await client.list_topics()


async def test_client_gives_up_a_write_whose_controller_is_frozen_while_others_answer() -> None:
    async with stage() as s, frozen_server() as frozen, ControllerClient([frozen, s.urls[0]]) as client:
        given_up = pytest.raises(OutcomeUnknown, match="has stopped answering, and others do answer")
        with within(15.0, "the frozen one had all of the time"), given_up:
            await client.create_topics(topics("foo"))
        with within(0.9, "it began with the frozen one again"), pytest.raises(ApiError) as refused:
            await client.create_topics(topics("foo"))
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR, "there are no brokers"


async def test_command_sends_no_change_to_a_frozen_controller_and_asks_again_what_changes_nothing() -> None:
    """It makes one change, so that it never learns by a first one who is frozen; which may do it when it wakes."""
    async with stage() as s, frozen_server() as frozen:
        async with ControllerClient([frozen, s.urls[0]], absent_ms=1_500) as client:
            with within(5.0, "it was sent to the frozen one"), pytest.raises(ApiError) as refused:
                await client.create_topics(topics("foo"))
            assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR, "there are no brokers"
        alone = pytest.raises(Unreachable, match="nothing was sent to it")
        async with ControllerClient([frozen], absent_ms=1_500) as client:
            with within(10.0, "it was sent to the frozen one"), alone:
                await client.create_topics(topics("foo"))
        async with ControllerClient([frozen, s.urls[0]]) as client:
            rehearsed = topics("foo").model_copy(update={"validate_only": True})
            with within(10.0, "it was given up"), pytest.raises(ApiError) as refused:
                await client.create_topics(rehearsed)
            assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


async def test_client_waits_for_an_election() -> None:
    async with stage(active=None) as s, ControllerClient(s.urls) as client:
        write = asyncio.create_task(client.create_topics(topics("foo")))
        assert not (await asyncio.wait({write}, timeout=0.1))[0]
        await s.elect(2)
        with pytest.raises(ApiError) as refused:
            await write
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR, "there are no brokers"


async def test_client_without_an_active_controller_gives_up_in_its_time() -> None:
    async with stage(active=None) as s, ControllerClient(s.urls, timeout_ms=1_000) as client:
        with pytest.raises(NotController, match="no active controller is known") as refused:
            await client.create_topics(topics("foo"))
        assert not isinstance(refused.value, Unreachable)


async def test_client_of_nobody_says_whom_it_tried() -> None:
    async with closed_port() as one, closed_port() as two, ControllerClient([one, two], timeout_ms=1_000) as client:
        with pytest.raises(Unreachable) as refused:
            await client.status()
        assert one in str(refused.value)
        assert two in str(refused.value)


async def test_client_does_not_repeat_a_write_that_was_not_answered() -> None:
    seen = []

    async def break_off(request: web.Request) -> web.StreamResponse:
        seen.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with server(break_off) as url, stage(1) as s:
        async with ControllerClient([url, *s.urls]) as client:
            with pytest.raises(OutcomeUnknown):
                await client.create_topics(topics("foo"))
            assert seen == ["POST"]
            assert (await client.list_topics()).topics == []
        async with ControllerClient([url, *s.urls]) as client:
            with pytest.raises(OutcomeUnknown):
                await client.delete_topic("foo")
            assert seen == ["POST", "DELETE"]


async def test_client_repeats_heartbeats_for_they_carry_their_epoch() -> None:
    async with frozen_server() as frozen, stage() as s:
        epoch = await s.register(1, 11)
        async with ControllerClient([frozen, *s.urls]) as client:
            heartbeat = BrokerHeartbeatRequest(broker_id=11, broker_epoch=epoch, current_metadata_offset=0)
            assert (await client.broker_heartbeat(heartbeat, timeout_ms=2_000)).is_fenced is False


@pytest.mark.parametrize(("body", "content_type"), [(b"{}", "application/json"), (b"\xc1", MSGPACK)])
async def test_client_of_something_else_says_that_the_answer_is_none(body: bytes, content_type: str) -> None:
    async def other(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=content_type, status=int(request.query.get("status", 200)))

    async with server(other) as url, ControllerClient([url]) as client:
        with pytest.raises(NoAnswer, match="the answer is no StatusReply"):
            await client.status_of(url, 1_000)
        with pytest.raises(NoAnswer, match="not a number"):
            await client.fetch_batches(url, 0, 0, 0, 1_000)


async def test_client_reads_the_feed_of_one_controller() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        await s.register(1, 11)
        batches = await client.fetch_batches(s.urls[1], 0, 0, 0, 1_000_000)
        assert batches.data == b"".join(s.quorum.batches)
        assert (batches.base_offset, batches.end_offset, batches.end_epoch) == (0, s.quorum.committed, 1)
        assert (batches.node.node_id, batches.node.active_id, batches.node.epoch) == (2, 1, 1)
        assert batches.node.high_watermark == s.quorum.committed
        assert batches.node.cluster_id == s.members[1].node.cluster_id
        empty = await client.fetch_batches(s.urls[1], batches.end_offset, 1, 0, 1_000)
        assert (empty.data, empty.end_epoch) == (b"", None)
        with pytest.raises(FeedOutOfRange) as refused:
            await client.fetch_batches(s.urls[1], s.quorum.committed, 0, 0, 1_000)
        assert refused.value.is_diverging
        async with closed_port() as gone:
            with pytest.raises(NotSent):
                await client.fetch_batches(gone, 0, 0, 0, 1_000)


async def test_client_fetches_a_checkpoint() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        with pytest.raises(ApiError) as refused:
            await client.fetch_checkpoint(s.urls[1], None, 0, 1_000)
        assert refused.value.code is ErrorCode.SNAPSHOT_NOT_FOUND
        data = s.members[2].add_checkpoint(7, 1)
        first = await client.fetch_checkpoint(s.urls[1], None, 0, 100)
        rest = await client.fetch_checkpoint(s.urls[1], (first.end_offset, first.epoch), 100, 1_000_000)
        assert (first.data + rest.data, first.size, rest.position) == (data, len(data), 100)


async def test_client_sends_the_shared_secret() -> None:
    secret = b"0123456789abcdef" * 2
    async with stage(1, shared_secret=secret) as s:
        async with ControllerClient(s.urls, shared_secret=secret) as client:
            assert (await client.describe_quorum()).active_id == 1
        async with ControllerClient(s.urls) as client:
            with pytest.raises(ApiError) as refused:
                await client.describe_quorum()
            assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_broker_rpcs_are_packed_with_uuids_as_bytes() -> None:
    request = DeleteTopicsRequest(topic_ids=[bytes(range(16))])
    assert msgpack.unpackb(pack(request)) == {"topic_ids": [bytes(range(16))]}
