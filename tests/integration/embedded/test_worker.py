"""Workers inside a program: their life, their sessions, and what the program sees of them."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from quorate import testing
from quorate.broker.settings import FeedSettings, LifecycleSettings
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest, ReplicaAssignment
from quorate.metadata_log.errors import ErrorCode, InvalidArgument
from quorate.worker import (
    BrokerSettings,
    LocalReplica,
    NotCaughtUp,
    ServiceReplicas,
    Worker,
    WorkerEnded,
    WorkerNotReady,
    worker,
)
from tests.integration.http_servers import server
from tests.integration.swallowing_proxy import swallowing_proxy
from tests.waiting import PATIENCE_S, eventually, within

SESSION_MS = 1_500
CLUSTER = {"brokers.session_timeout_ms": SESSION_MS}


def settings(broker_id: int, urls: Any, **more: Any) -> BrokerSettings:
    """A broker that speaks often."""
    lifecycle = LifecycleSettings(
        heartbeat_interval_ms=100,
        request_timeout_ms=more.pop("request_timeout_ms", 500),
        registration_timeout_ms=more.pop("patience_ms", 20_000),
        shutdown_timeout_ms=more.pop("leaving_ms", 500),
    )
    feed = FeedSettings(wait_ms=100, retry_max_ms=100)
    values: dict[str, Any] = {"ids": [broker_id], "controllers": list(urls), **more}
    return BrokerSettings(**values, lifecycle=lifecycle, feed=feed)


class Told(ServiceReplicas):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: dict[str, int] = {}
        self.follows: dict[str, int] = {}
        self.sessions: list[str] = []

    def lead(self, broker_id: int, replica: LocalReplica) -> None:
        self.leads[f"{replica.topic}-{replica.partition_id}"] = replica.state.leader_epoch
        self.follows.pop(f"{replica.topic}-{replica.partition_id}", None)

    def follow(self, broker_id: int, replica: LocalReplica) -> None:
        self.follows[f"{replica.topic}-{replica.partition_id}"] = replica.state.leader_epoch
        self.leads.pop(f"{replica.topic}-{replica.partition_id}", None)

    def drop(self, broker_id: int, replica: LocalReplica) -> None:
        self.leads.pop(f"{replica.topic}-{replica.partition_id}", None)
        self.follows.pop(f"{replica.topic}-{replica.partition_id}", None)

    def on_session_lost(self, broker_id: int) -> None:
        self.sessions.append("lost")

    def on_session_back(self, broker_id: int) -> None:
        self.sessions.append("back")


async def create(cluster: testing.EmbeddedCluster, name: str, *assignments: list[int]) -> None:
    partitions = [ReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in enumerate(assignments)]
    topic = CreatableTopic(name=name, assignments=partitions)
    async with cluster.client() as client:
        reply = await client.create_topics(CreateTopicsRequest(topics=[topic]))
    assert reply.topics[0].error_code is ErrorCode.NONE, reply


async def tasks_named(name: str) -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == name]


async def holds(condition: Any) -> bool:
    return bool(condition())


async def test_two_workers_of_one_program_are_told_what_they_lead_and_leave_in_good_order(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    one, two = Told(), Told()
    session_ms, patient = 20_000, {"leaving_ms": 20_000}  # good order takes as long as the machine does
    async with testing.cluster(settings={"brokers.session_timeout_ms": session_ms}) as cluster:
        capfd.readouterr()
        async with worker(settings(1, cluster.urls, listeners="KV://kv-1.example:7001", **patient), one) as first:
            await first.ready()
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
            async with worker(settings(2, cluster.urls, listeners="KV://[fd00::2]:7002", **patient), two) as second:
                await second.ready()
                await create(cluster, "t", [1, 2], [2, 1])
                await eventually(lambda: holds(lambda: one.leads == {"t-0": 0} and one.follows == {"t-1": 0}), "first")
                await eventually(lambda: holds(lambda: two.leads == {"t-1": 0} and two.follows == {"t-0": 0}), "second")
                ends = {id_: known.listeners for id_, known in first.image.cluster.brokers.items()}
                assert [(end.name, end.host, end.port) for end in (*ends[1], *ends[2])] == [
                    ("KV", "kv-1.example", 7001),
                    ("KV", "fd00::2", 7002),
                ]
                session = second.session(2)
                assert session.is_valid
                assert session.valid_until <= time.clock_gettime(time.CLOCK_BOOTTIME) + session_ms / 1000
                assert session.broker_epoch == second.image.cluster.brokers[2].epoch
            assert second.readiness()[0].is_clean_stop
            await eventually(lambda: holds(lambda: one.leads == {"t-0": 0, "t-1": 1}), "the other one leads it all")
    assert one.sessions[0] == two.sessions[0] == "back"
    assert capfd.readouterr().out.count("broker.") == 0, "what a worker logs is no output of the program"


async def test_worker_without_controllers_loses_its_session_before_they_can_end_it_and_has_it_back() -> None:
    told = Told()
    async with testing.cluster(settings=CLUSTER) as cluster, worker(settings(1, cluster.urls), told) as one:
        await one.ready()
        await eventually(lambda: holds(lambda: told.sessions == ["back"]), "its session")
        with within(SESSION_MS / 1000, "its controllers could have ended it by then"):
            await cluster.stop(0)
            await eventually(lambda: holds(lambda: told.sessions == ["back", "lost"]), "its session is lost")
        assert not one.session(1).is_valid
        await cluster.start(0)
        await eventually(lambda: holds(lambda: told.sessions == ["back", "lost", "back"]), "its session is back")
        assert one.session(1).is_valid


async def test_worker_is_told_of_its_sessions_end_while_it_waits_for_an_answer() -> None:
    """Nothing wakes it: its connections stay open, and its request may take far longer than its session."""
    told = Told()
    async with testing.cluster(settings=CLUSTER) as cluster, swallowing_proxy(cluster.urls[0]) as proxy:
        slow = settings(1, [proxy.url], request_timeout_ms=60_000)
        async with worker(slow, told) as one:
            await one.ready()
            proxy.is_swallowing = True
            with within(SESSION_MS / 1000, "its controllers could have ended it by then"):
                await eventually(lambda: holds(lambda: told.sessions == ["back", "lost"]), "its session is lost")


async def test_worker_that_resigns_is_relieved_until_it_is_ready_again() -> None:
    one, two = Told(), Told()
    async with (
        testing.cluster(settings=CLUSTER) as cluster,
        worker(settings(1, cluster.urls), one) as first,
        worker(settings(2, cluster.urls), two) as second,
    ):
        await first.ready()
        await second.ready()
        await create(cluster, "t", [1, 2])
        await eventually(lambda: holds(lambda: one.leads == {"t-0": 0}), "it leads")
        one.resign(1)
        await eventually(lambda: holds(lambda: two.leads == {"t-0": 1}), "the other one leads")
        await eventually(lambda: holds(lambda: not first.session(1).is_valid), "it has no session")
        one.ready(1)
        await first.ready()
        await eventually(lambda: holds(lambda: first.session(1).is_valid), "it has one again")


async def test_worker_that_cannot_follow_ends_the_block_with_its_reason() -> None:
    async def program() -> None:
        nobody = settings(1, ["127.0.0.1:9"], patience_ms=200)
        async with worker(nobody, Told()) as one:
            with pytest.raises(WorkerNotReady, match=r"within 0.05 s: broker 1 is registering"):
                await one.ready(timeout_s=0.05)
            await asyncio.Event().wait()  # is cancelled

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(NotCaughtUp, match=r"within 0.2 s"):
            await program()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("given", [None, b"given" * 8])
async def test_worker_shows_the_secret_that_its_settings_or_its_program_name(
    tmp_path: Path, given: bytes | None
) -> None:
    file, shown = tmp_path / "token", asyncio.Queue[str]()
    file.write_text("from-file" * 4 + "\n", encoding="ascii")
    file.chmod(0o600)

    async def refuse(request: web.Request) -> web.Response:
        await shown.put(request.headers["Authorization"])
        return web.Response(status=503)

    async with server(refuse) as url:
        own = settings(1, [url], shared_secret_file=file)
        async with asyncio.timeout(PATIENCE_S), worker(own, Told(), shared_secret=given):
            assert await shown.get() == f"Bearer {(given or b'from-file' * 4).decode()}"


async def test_manager_of_a_worker_is_refused_to_another_until_that_is_over() -> None:
    told = Told()
    async with testing.cluster(settings=CLUSTER) as cluster:
        async with worker(settings(1, cluster.urls), told) as one:
            await one.ready()
            with pytest.raises(InvalidArgument, match="at work for another worker"):
                async with worker(settings(2, cluster.urls), told):
                    pass
            assert one.session(1).is_valid
        async with worker(settings(2, cluster.urls), told) as two:
            await two.ready()
            assert not told.has_session(1)


async def test_block_that_raises_ends_the_worker_at_once_as_if_it_was_killed() -> None:
    made: list[Worker] = []

    async def program(cluster: testing.EmbeddedCluster) -> None:
        async with worker(settings(1, cluster.urls), Told()) as one:
            made.append(one)
            await one.ready()
            raise LookupError("of the program")

    async with testing.cluster(settings=CLUSTER) as cluster:
        with pytest.raises(LookupError, match="of the program"):
            await program(cluster)
        assert not made[0].readiness()[0].is_clean_stop


@pytest.mark.parametrize(
    "name",
    [
        "worker",
        "brokers",
        "metadata-loader",
        "the task of broker 1",
        "the task of service-replicas",
        "a request of broker 1",
    ],
)
async def test_worker_whose_task_is_cancelled_by_somebody_else_ends_the_block(name: str) -> None:
    async def program(cluster: testing.EmbeddedCluster) -> None:
        async with asyncio.timeout(PATIENCE_S), worker(settings(1, cluster.urls), Told()) as one:
            await one.ready()
            (own,) = await eventually(lambda: tasks_named(name), f"{name} is there")
            own.cancel()
            await asyncio.Event().wait()

    async with testing.cluster(settings=CLUSTER) as cluster:
        with pytest.raises(WorkerEnded, match="cancelled the worker's tasks"):
            await program(cluster)


async def test_session_call_that_raises_is_counted_and_ends_nothing() -> None:
    class Raising(Told):
        def on_session_back(self, broker_id: int) -> None:
            super().on_session_back(broker_id)
            raise asyncio.CancelledError if len(self.sessions) > 1 else LookupError

        def on_session_lost(self, broker_id: int) -> None:
            super().on_session_lost(broker_id)
            raise LookupError

    told = Raising()
    async with testing.cluster(settings=CLUSTER) as cluster, worker(settings(1, cluster.urls), told) as one:
        await one.ready()
        await cluster.stop(0)
        await eventually(lambda: holds(lambda: told.sessions == ["back", "lost"]), "its session is lost")
        await cluster.start(0)
        await eventually(lambda: holds(lambda: told.sessions == ["back", "lost", "back"]), "its session is back")
        await one.ready()
        (state,) = [state for state in one._host.publishers.states() if state.publisher is told]
        assert state.error_count == 3
