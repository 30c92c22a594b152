"""The service of docs/publishers.md: who is in sync is what it says, so a loss loses nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from quorate.broker.replicas import NotNoted, ServiceReplicas
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ErrorCode
from tests.integration.broker_stage import playing, stage_with_short_sessions
from tests.integration.brokers.test_broker_host import create, partition, sees
from tests.integration.http_stage import stage
from tests.waiting import eventually

PAGE = Path(__file__).parents[3] / "docs" / "publishers.md"


def shard_store() -> Any:
    """The class of the page's program."""
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (program,) = [one for one in programs if "class ShardStore" in one]
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names["ShardStore"]


class Service:
    """Stores of several brokers, as the page's programs make them."""

    def __init__(self) -> None:
        self.peers: dict[int, Any] = {}
        self._store = shard_store()

    def worker(self, broker_id: int) -> dict[str, Any]:
        """Arguments of ``playing`` for a new process of a broker."""
        replicas = ServiceReplicas()
        return {"replicas": replicas, "publishers": [self._store(broker_id, replicas, self.peers)]}


async def test_service_replica_that_comes_back_empty_is_out_until_it_has_copied_and_then_loses_nothing() -> None:
    service = Service()
    async with (
        stage_with_short_sessions() as built,
        ControllerClient(built.urls) as client,
        playing([1], built.urls, **service.worker(1)) as first,
    ):
        async with playing([2], built.urls, **service.worker(2)) as second:
            await first.ready()
            await second.ready()
            await create(client, "kv", [1, 2])
            shard = (built.members[1].controller.stable.topics.by_name["kv"].id, 0)
            await eventually(lambda: has(service.peers[1], shard), "the leader knows its shard")
            service.peers[1].put(shard, "a", "1")
            await second.leave()
        await sees(built, "kv", 0, "the other one leads alone", leader=1, isr=(1,))
        await eventually(lambda: has(service.peers[1], shard, isr=(1,)), "it knows that")
        service.peers[1].put(shard, "b", "2")

        async with playing([2], built.urls, **service.worker(2)) as back:
            await back.ready()
            assert service.peers[2].data[shard] == {}
            assert partition(built, "kv", 0).isr == (1,), "it is alive, unfenced and empty"
            service.peers[2].copy(shard)
            service.peers[1].put(shard, "c", "3")
            await sees(built, "kv", 0, "it is in sync", isr=(1, 2))

            first.task.cancel()  # killed
            await sees(built, "kv", 0, "the copy leads", leader=2)
            assert service.peers[2].data[shard] == {"a": "1", "b": "2", "c": "3"}


async def has(store: Any, shard: tuple[bytes, int], **wanted: object) -> bool:
    if store.image.partitions.row(*shard) is None:
        return False
    return all(getattr(store.state(shard), name) == value for name, value in wanted.items())


async def test_service_replica_that_fell_behind_leaves_the_isr_and_may_come_back() -> None:
    service = Service()
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        playing([1], built.urls, **service.worker(1)) as first,
        playing([2], built.urls, **service.worker(2)) as second,
    ):
        await first.ready()
        await second.ready()
        await create(client, "kv", [1, 2])
        shard = (built.members[1].controller.stable.topics.by_name["kv"].id, 0)
        for worker in (1, 2):
            await eventually(lambda worker=worker: has(service.peers[worker], shard), "it knows its shard")  # type: ignore[misc]
        replicas: ServiceReplicas = service.peers[1].replicas
        replicas.fell_behind(*shard, 0, 2)
        await sees(built, "kv", 0, "it is out", isr=(1,))
        await eventually(lambda: has(service.peers[1], shard, isr=(1,)), "its leader knows that")

        epoch = service.peers[2].replicas.broker_epoch(2)
        for leader_epoch, broker_epoch, code in (
            (0, epoch + 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, epoch, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            with pytest.raises(NotNoted, match=code.name):
                replicas.caught_up(*shard, leader_epoch, 2, broker_epoch)
        with pytest.raises(NotNoted, match="NOT_LEADER_OR_FOLLOWER"):
            service.peers[2].replicas.caught_up(*shard, 0, 2, epoch)
        assert partition(built, "kv", 0).isr == (1,)
        replicas.caught_up(*shard, 0, 2, epoch)
        await sees(built, "kv", 0, "it is back", isr=(1, 2))


async def test_service_holds_unfencing_until_it_is_ready() -> None:
    replicas = ServiceReplicas(holds_unfencing=True)
    async with stage(1) as built, playing([1, 2], built.urls, replicas=replicas) as played:
        replicas.ready(2)

        async def second_is_ready() -> bool:
            return [broker.is_ready for broker in played.host.readiness()] == [False, True]

        await eventually(second_is_ready, "broker 2 is unfenced")
        assert built.members[1].controller.stable.cluster.brokers[1].is_fenced
        replicas.ready(1)
        await played.ready()


async def test_service_failed_directory_is_taken_offline_by_the_controllers() -> None:
    """It was the only one, so the broker ends without a word, and its session tells."""
    replicas = ServiceReplicas()
    async with (
        stage_with_short_sessions() as built,
        ControllerClient(built.urls) as client,
        playing([1, 2], built.urls, replicas=replicas) as played,
    ):
        await played.ready()
        await create(client, "kv", [1, 2])
        (directory,) = built.members[1].controller.stable.cluster.brokers[1].directories
        await sees(built, "kv", 0, "it is led", leader=1)
        replicas.directory_failed(1, directory)

        await sees(built, "kv", 0, "its replica is offline, so another leads", leader=2, isr=(2,))
