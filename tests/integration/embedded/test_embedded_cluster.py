"""A quorum inside the test's own process: it serves, its controllers stop and start, and nothing is left of it."""

import asyncio
import gc
import os
import socket
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from quorate import testing
from quorate.controller.client.client import ControllerClient
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http.serving import HttpServer
from quorate.metadata_log.errors import CorruptCheckpoint, NotController
from quorate.metadata_log.invalid_settings import InvalidSettings
from tests.integration.embedded.changes import CHANGE, is_listened_to
from tests.waiting import eventually

WAIT_S = 30.0


async def has_change(*urls: str, is_linearizable: bool = True) -> bool:
    """Of what these controllers have applied, or at least what was acknowledged by any."""
    async with ControllerClient(urls) as client:
        found = await client.describe_configs("BROKER", "", is_linearizable=is_linearizable)
        return ("message.max.bytes", "4711") in [(one.name, one.value) for one in found.configs]


def open_files() -> set[str]:
    """What this process has open: sockets, which need not listen, and files."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    return found


async def test_single_controller_serves_and_leaves_neither_port_nor_file_nor_thread() -> None:
    files, threads, tasks = open_files(), set(threading.enumerate()), asyncio.all_tasks()
    async with testing.cluster() as cluster:
        (url,) = cluster.urls
        assert is_listened_to(url)
        assert list(cluster.directory.glob("controller-0/__cluster_metadata-0/*.log"))
        answer = await cluster.client().incremental_alter_configs(CHANGE)
        assert [one.error_code for one in answer.responses] == [0]
        assert await has_change(*cluster.urls)

    assert not is_listened_to(url)
    assert open_files() - files == set()
    assert not cluster.directory.exists()
    assert asyncio.all_tasks() == tasks
    # Those of the loop's own executor stay until the loop is closed.
    assert {one.name for one in set(threading.enumerate()) - threads if not one.name.startswith("asyncio_")} == set()


async def test_nothing_of_controllers_that_ended_stays_in_memory() -> None:
    async with testing.cluster() as cluster, cluster.client() as client:
        await client.describe_cluster()  # the framework answers, which keeps handlers
        await cluster.stop(0)
        await cluster.start(0)
        await client.list_topics()
        kinds = (QuorumController, HttpServer, web.Application)
        kept = [weakref.ref(one) for one in gc.get_objects() if isinstance(one, kinds)]
        assert len(kept) >= len(kinds)
    del cluster, client

    async def are_gone() -> bool:
        gc.collect()
        return not any(one() for one in kept)

    await eventually(are_gone, "the loop lets go of what it called last", WAIT_S)


async def test_controller_that_was_stopped_has_on_disk_what_was_acknowledged() -> None:
    async with testing.cluster(controllers=1) as cluster:
        await cluster.client().incremental_alter_configs(CHANGE)
        await cluster.stop(0)
        assert (cluster.running, is_listened_to(cluster.urls[0])) == (frozenset(), False)
        with pytest.raises(NotController):
            await cluster.client(timeout_ms=1_000).describe_cluster()

        await cluster.start(0)

        assert cluster.running == {0}
        assert await has_change(*cluster.urls)


async def test_two_of_three_controllers_go_on_without_the_one_that_led() -> None:
    async with testing.cluster(controllers=3) as cluster:
        leader = (await cluster.client().describe_quorum()).active_id
        assert leader in (0, 1, 2)
        await cluster.stop(leader)

        await cluster.client().incremental_alter_configs(CHANGE)

        assert await has_change(*cluster.urls)
        assert (await cluster.client().describe_quorum()).active_id != leader
        await cluster.start(leader)

        async def is_back() -> bool:
            return await has_change(cluster.urls[leader], is_linearizable=False)

        await eventually(is_back, "the change on the controller that was started again", WAIT_S)


async def test_stop_that_is_cancelled_is_done_all_the_same() -> None:
    async with testing.cluster() as cluster:
        stopping = asyncio.create_task(cluster.stop(0))
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.wait([stopping])

        assert stopping.cancelled()
        assert (cluster.running, is_listened_to(cluster.urls[0])) == (frozenset(), False)
        with pytest.raises(testing.WrongState, match="controller 0 does not run"):
            await cluster.stop(0)
        await cluster.start(0)
        assert is_listened_to(cluster.urls[0])


async def test_start_waits_for_the_end_of_a_stop_that_is_under_way() -> None:
    async with testing.cluster() as cluster:
        await asyncio.gather(cluster.stop(0), cluster.start(0))

        assert (cluster.running, is_listened_to(cluster.urls[0])) == (frozenset({0}), True)


@pytest.mark.parametrize("clients", [0, 2])
async def test_block_that_is_cancelled_while_it_ends_leaves_no_controller(clients: int) -> None:
    files, tasks = open_files(), asyncio.all_tasks()
    clusters = []

    async def block() -> None:
        async with testing.cluster() as cluster:
            clusters.append(cluster)
            for _ in range(clients):
                await cluster.client().describe_features()
            this = asyncio.current_task()
            assert this is not None
            this.cancel()
            asyncio.get_running_loop().call_soon(this.cancel)

    ended = asyncio.create_task(block())
    await asyncio.wait([ended])

    assert ended.cancelled()
    assert not is_listened_to(clusters[0].urls[0])
    assert (clusters[0].running, asyncio.all_tasks()) == (frozenset(), tasks)
    assert open_files() - files == set()


async def test_controller_that_is_to_end_before_it_has_started_leaves_no_work_that_nobody_awaits(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async with testing.cluster() as cluster:
        await cluster.stop(0)
        starting = asyncio.create_task(cluster.start(0))
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []


async def test_clusters_beside_each_other_do_not_know_each_other() -> None:
    async with testing.cluster() as one, testing.cluster() as other:
        ids = {(await each.client().describe_cluster()).cluster_id for each in (one, other)}
        assert len(ids) == len({*one.urls, *other.urls}) == 2


@pytest.mark.parametrize("number", [0, 2, 4, -1, True, 1.0, "3"])
async def test_cluster_of_a_number_that_cannot_be_is_refused_with_the_number_and_the_rule(number: Any) -> None:
    with pytest.raises(testing.InvalidCluster, match=rf"1 controller or 3, not {number!r}"):
        async with testing.cluster(controllers=number):
            pytest.fail("it was made")


async def test_controllers_that_are_not_there_or_not_so_are_refused_and_nothing_changes() -> None:
    async with testing.cluster() as cluster:
        for wrong in (1, -1, True, "0"):
            with pytest.raises(testing.InvalidCluster, match=f"no controller {wrong!r}: they are numbered from 0 to 0"):
                await cluster.stop(wrong)  # type: ignore[arg-type]
        with pytest.raises(testing.WrongState, match="controller 0 runs already"):
            await cluster.start(0)
        assert is_listened_to(cluster.urls[0])
        await cluster.stop(0)
        with pytest.raises(testing.WrongState, match="controller 0 does not run"):
            await cluster.stop(0)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokers.session": 1}, "brokers.session: no setting has this name"),
        ({"brokers.session_timeout_ms": 1}, "brokers.session_timeout_ms.*100"),
        ({"node_id": 5}, "'node_id' cannot be set here"),
        ({"brokers.session_timeout_ms": None}, "session_timeout_ms' cannot be set so: .*not str with NoneType"),
        ([("brokers.session_timeout_ms", 500)], "settings must be a mapping of names to values, not list"),
    ],
)
async def test_wrong_setting_is_refused_by_name_and_leaves_no_file(
    settings: dict[str, Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidSettings, match=why):
        async with testing.cluster(settings=settings):
            pytest.fail("it was made")
    assert os.listdir(tmp_path) == []


async def test_environment_of_the_program_does_not_reach_the_controllers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_CONTROLLER_NO_SUCH_SETTING", "1")
    async with testing.cluster(settings={"topics.can_be_deleted": False, "brokers.session_timeout_ms": 500}) as cluster:
        assert is_listened_to(cluster.urls[0])


async def test_controller_that_fails_before_it_joins_the_quorum_leaves_no_file_open() -> None:
    async with testing.cluster() as cluster:
        await cluster.stop(0)
        files = open_files()
        (cluster.directory / "controller-0" / "bootstrap.checkpoint").write_bytes(b"no batch")

        with pytest.raises(CorruptCheckpoint, match=r"bootstrap\.checkpoint: not a usable"):
            await cluster.start(0)

        assert open_files() - files == set()


async def test_port_that_somebody_listens_on_keeps_a_controller_from_starting_and_not_from_ending() -> None:
    async with testing.cluster() as cluster:
        await cluster.stop(0)
        address = urlsplit(cluster.urls[0])
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((address.hostname, address.port))
            other.listen()
            with pytest.raises(OSError, match="in use"):
                await cluster.start(0)
            assert cluster.running == frozenset()
        await cluster.start(0)
        assert is_listened_to(cluster.urls[0])
