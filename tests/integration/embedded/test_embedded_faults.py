"""A fault that would end a controller's process is raised where the cluster is used, and ends nothing else."""

import asyncio
import errno

import pytest

from quorate import testing
from quorate.broker.raised_faults import RaisedFaults
from quorate.metadata_log.disk import RealFile
from quorate.metadata_log.errors import ApiError
from quorate.scripts.embedded.faults import EmbeddedFaults
from tests.integration.embedded.changes import CHANGE, is_listened_to
from tests.waiting import eventually

WAIT_S = 20.0


class Broken(Exception):
    """What a controller meets."""


def fail(file: RealFile) -> None:
    raise OSError(errno.EIO, "the disk is gone")


def faults_in(raised: RaisedFaults) -> EmbeddedFaults:
    return EmbeddedFaults(1, raised.note)


async def test_fault_ends_a_block_that_waits_with_what_the_controller_met() -> None:
    raised = RaisedFaults()
    with pytest.raises(testing.ControllerFault, match=r"controller 1 was stopped: an event: too bad") as caught:  # noqa: PT012  # what is raised comes from the end of the block
        async with raised:
            asyncio.get_running_loop().call_soon(faults_in(raised).fatal, "an event", Broken("too bad"))
            await asyncio.Event().wait()
    assert isinstance(caught.value.__cause__, Broken)
    await asyncio.sleep(0)  # no cancellation is left over


async def test_fault_noted_when_nothing_waits_any_more_is_raised_at_the_end() -> None:
    raised = RaisedFaults()
    with pytest.raises(testing.ControllerFault):
        async with raised:
            faults_in(raised).fatal("an event", Broken())
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_fault_tells_of_what_the_block_raised_meanwhile() -> None:
    raised = RaisedFaults()
    with pytest.raises(testing.ControllerFault) as caught:  # noqa: PT012  # what is raised comes from the end of the block
        async with raised:
            faults_in(raised).fatal("an event", Broken())
            raise Broken("of the test")
    assert caught.value.__notes__ == ["meanwhile the block raised Broken('of the test')"]


async def test_block_that_is_cancelled_from_outside_stays_cancelled() -> None:
    raised, is_waiting = RaisedFaults(), asyncio.Event()

    async def block() -> None:
        async with raised:
            is_waiting.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(block())
        await is_waiting.wait()
        task.cancel()
        faults_in(raised).fatal("an event", Broken())
    assert task.cancelled()


async def test_only_the_first_of_two_faults_is_raised() -> None:
    raised = RaisedFaults()
    with pytest.raises(testing.ControllerFault, match="first"):  # noqa: PT012  # what is raised comes from the end of the block
        async with raised:
            one = faults_in(raised)
            one.fatal("first", Broken())
            one.fatal("second", Broken())
            faults_in(raised).fatal("third", Broken())


async def test_fault_noted_when_the_task_that_began_is_gone_is_raised_by_the_one_that_ends() -> None:
    """As in a fixture, of which each half may have a task of its own."""
    raised = RaisedFaults()
    await asyncio.create_task(raised.__aenter__())
    faults_in(raised).fatal("an event", Broken())
    with pytest.raises(testing.ControllerFault):
        await raised.__aexit__(None, None, None)


async def test_controller_whose_disk_fails_is_stopped_and_the_disks_error_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(testing.ControllerFault, match="the disk is gone"):  # noqa: PT012  # raised by the block's end
        async with testing.cluster() as cluster:
            monkeypatch.setattr(RealFile, "sync", fail)
            await cluster.client().incremental_alter_configs(CHANGE)
            await asyncio.Event().wait()
    assert cluster.running == frozenset()
    assert not cluster.directory.exists()


async def test_controller_whose_disk_fails_is_gone_before_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun by a task that is over, as a fixture's may be: nobody can be cancelled, and it must not serve on."""
    block = testing.cluster()
    cluster = await asyncio.create_task(block.__aenter__())
    monkeypatch.setattr(RealFile, "sync", fail)
    with pytest.raises(ApiError):
        await cluster.client(timeout_ms=2_000).incremental_alter_configs(CHANGE)

    async def is_gone() -> bool:
        return not is_listened_to(cluster.urls[0])

    try:
        await eventually(is_gone, "the controller's end", WAIT_S)
        assert cluster.running == frozenset()
    finally:
        with pytest.raises(testing.ControllerFault, match="the disk is gone"):
            await block.__aexit__(None, None, None)
