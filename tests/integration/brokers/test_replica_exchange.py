"""Followers and leaders in processes of their own: frozen, slow and stalled ones, and the routes they speak over."""

from __future__ import annotations

import io
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorate.broker.replicas import ServiceReplicas
from quorate.broker.replicas.messages import FRAME_BYTES_MAX
from quorate.broker.replicas.peers import FOLLOW_PATH, MSGPACK
from quorate.broker.settings import RehearsalSettings, ReplicaSettings
from quorate.controller.client.client import ControllerClient
from tests.integration.broker_stage import Played, playing, stage_with_short_sessions
from tests.integration.brokers.test_broker_host import create, partition, reassign, sees
from tests.integration.brokers.test_broker_process import BrokerProcess, broker_process, ready
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

QUICK = ReplicaSettings(lag_time_max_ms=600, interval_ms=50, timeout_ms=300, retry_max_ms=100)
QUICK_VARIABLES = {
    "QUORATE_BROKER_REPLICAS__LAG_TIME_MAX_MS": "600",
    "QUORATE_BROKER_REPLICAS__INTERVAL_MS": "50",
    "QUORATE_BROKER_REPLICAS__TIMEOUT_MS": "300",
    "QUORATE_BROKER_REPLICAS__RETRY_MAX_MS": "100",
}


@asynccontextmanager
async def two_here_and_one_apart(built: Stage, **settings: Any) -> AsyncIterator[tuple[Played, BrokerProcess]]:
    """Brokers 1 and 2 in this process, broker 3 in a child's."""
    async with (
        playing("1-2", built.urls, replicas_settings=QUICK, **settings) as here,
        broker_process("--ids", "3", "--controllers", built.urls[0], **QUICK_VARIABLES) as apart,
    ):
        await here.ready()
        await ready(built, 3)
        yield here, apart


async def test_exchange_frozen_target_of_a_reassignment_leaves_it_open_until_it_wakes() -> None:
    """It stays open beyond the end of its session, as in Kafka: only an answer of the target completes it."""
    async with (
        stage_with_short_sessions() as built,
        ControllerClient(built.urls) as client,
        two_here_and_one_apart(built) as (_, apart),
    ):
        await create(client, "t", [1, 2])
        apart.process.send_signal(signal.SIGSTOP)
        await reassign(client, "t", 0, [3, 1])
        await sees(built, "t", 0, "it is begun", adding_replicas=(3,))

        async def fenced() -> bool:
            return built.members[1].controller.stable.cluster.brokers[3].is_fenced

        await eventually(fenced, "the session of the frozen broker ends")
        state = partition(built, "t", 0)
        assert (state.adding_replicas, state.removing_replicas, state.isr) == ((3,), (2,), (1, 2))

        apart.process.send_signal(signal.SIGCONT)
        await sees(built, "t", 0, "it is complete", adding_replicas=(), replicas=(3, 1))


async def test_exchange_frozen_follower_leaves_the_isr_before_its_session_ends() -> None:
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        two_here_and_one_apart(built) as (_, apart),
    ):
        await create(client, "t", [1, 2, 3])
        apart.process.send_signal(signal.SIGSTOP)
        await sees(built, "t", 0, "it is out", isr=(1, 2))
        assert not built.members[1].controller.stable.cluster.brokers[3].is_fenced

        apart.process.send_signal(signal.SIGCONT)
        await sees(built, "t", 0, "it is back", isr=(1, 2, 3))


async def test_exchange_frozen_leader_does_not_blame_its_followers_when_it_wakes() -> None:
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        two_here_and_one_apart(built) as (here, apart),
    ):
        await create(client, "t", [3, 1, 2])
        await eventually(lambda: said(any(link.row_count for link in follower_links(here))), "it is followed")
        (link,) = [link for link in follower_links(here) if link.row_count]
        await eventually(lambda: said(link.has_told_position), "the leader was told")
        apart.process.send_signal(signal.SIGSTOP)
        # Each takes a timeout of 300 ms: far longer than a follower may be silent.
        await eventually(lambda: said(link.failures >= 4), "the followers hear nothing of it")
        epoch = partition(built, "t", 0).partition_epoch
        apart.process.send_signal(signal.SIGCONT)
        await eventually(lambda: said(link.failures == 0 and link.number >= 5), "it is followed again")

        assert partition(built, "t", 0).partition_epoch == epoch, "its ISR was never another"


async def test_exchange_slowed_down_follower_falls_out_and_comes_back() -> None:
    written = RehearsalSettings(partition_bytes=1_000, write_bytes_per_s=10_000)
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        playing([1], built.urls, replicas_settings=QUICK, rehearsal=written) as leading,
        playing([2], built.urls, replicas_settings=QUICK, rehearsal=written) as following,
    ):
        await leading.ready()
        await following.ready()
        await create(client, "t", [1, 2])
        assert await put(following, {"copy_bytes_per_s": 1_000}) == (
            200,
            {"copy_bytes_per_s": 1_000, "is_stalled": False},
        )
        await sees(built, "t", 0, "it cannot keep up", isr=(1,))

        await put(following, {"copy_bytes_per_s": 0})
        await sees(built, "t", 0, "it has caught up", isr=(1, 2))
        await put(following, {"copy_bytes_per_s": 0, "is_stalled": True})
        await sees(built, "t", 0, "it stands still", isr=(1,))


async def put(played: Played, body: object, **headers: str) -> tuple[int, Any]:
    url = f"http://{played.endpoint.host}:{played.endpoint.port}/v1/rehearsal"
    async with played.session.put(url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def follower_links(played: Played) -> Any:
    rehearsal = played.host.rehearsal
    assert rehearsal is not None
    return rehearsal._follower.links


async def said(is_so: bool) -> bool:
    return is_so


@pytest.mark.parametrize(
    ("headers", "size", "status", "words"),
    [
        ({"Content-Type": "text/plain"}, 1, 400, "not application/msgpack"),
        ({"Content-Type": MSGPACK}, 1, 400, "cannot be unpacked"),
        ({"Content-Type": MSGPACK}, FRAME_BYTES_MAX + 1, 400, "more than"),
        ({"Content-Type": MSGPACK, "Content-Encoding": "gzip"}, 1, 400, "the body is compressed, 'gzip'"),
        ({"Content-Type": MSGPACK, "Host": "example.org"}, 1, 403, "not as loopback"),
    ],
)
async def test_follow_route_bad_request_is_refused_in_the_error_shape(
    headers: dict[str, str], size: int, status: int, words: str
) -> None:
    async with stage(1) as built, playing([1], built.urls) as played:
        url = f"http://{played.endpoint.host}:{played.endpoint.port}{FOLLOW_PATH}"
        async with played.session.post(url, data=io.BytesIO(b"\xc1" * size), headers=headers) as answer:
            assert answer.status == status
            assert words in (await answer.json())["message"]


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "example.org:18091", "[", ""])
async def test_web_page_reads_nothing_by_having_its_own_name_lead_here(host: str) -> None:
    async with stage(1) as built, playing([1], built.urls) as played:
        url = f"http://{played.endpoint.host}:{played.endpoint.port}"
        for path in ("/v1/process", "/v1/topics", "/v1/image", "/metrics", "/readyz", "/nothing"):
            async with played.session.get(url + path, headers={"Host": host}) as answer:
                assert answer.status in (400, 403), path
                if answer.status == 403:
                    assert "not as loopback" in (await answer.json())["message"]


async def test_routes_that_change_something_ask_for_the_shared_secret() -> None:
    async with stage(1) as built, playing([1], built.urls, own_secret=b"s3cret") as played:
        for given in ({}, {"Authorization": "Bearer wrong"}):
            status, reply = await put(played, {"copy_bytes_per_s": 1}, **given)
            assert (status, reply["error"]) == (401, "CLUSTER_AUTHORIZATION_FAILED")
        assert (await played.get("/v1/rehearsal"))[1]["copy_bytes_per_s"] == 0
        assert (await put(played, {"copy_bytes_per_s": 1}, Authorization="Bearer s3cret"))[0] == 200


async def test_rehearsal_route_unknown_field_or_no_rehearsal_is_refused() -> None:
    async with stage(1) as built, playing([1], built.urls) as played:
        assert (await put(played, {"copy_bytes_per_s": -1}))[0] == 400
        assert (await put(played, {"copy_bytes_per_s": 1, "pace": 1}))[0] == 400
    async with stage(1) as built, playing([1], built.urls, replicas=ServiceReplicas()) as played:
        await played.ready()
        status, reply = await put(played, {"copy_bytes_per_s": 1})
        assert (status, reply["error"]) == (404, "RESOURCE_NOT_FOUND")
        _, reply = await played.get("/v1/process")
        assert reply["replica_manager"]["moves_data"] is True
