"""Which cancellations of a task are meant, and which are told."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from quorate.broker.own_tasks import OwnTasks, TaskCancelled


async def wait() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise LookupError("of its own")


async def begun(tasks: OwnTasks, name: str = "a task") -> asyncio.Task[None]:
    task = tasks.create_task(wait(), name)
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.parametrize("waits", [True, False])
async def test_task_that_others_cancel_ends_the_group_and_is_named_by_all_around_it(
    has_begun: bool, waits: bool
) -> None:
    async def within() -> None:
        async with OwnTasks() as inner:
            task = inner.create_task(wait(), "the second")
            if has_begun:
                await asyncio.sleep(0)
            task.cancel()
            if waits:
                await wait()

    async def program() -> None:
        async with OwnTasks() as outer:
            await begun(outer)
            outer.create_task(within(), "the first")
            await wait()

    with pytest.raises(TaskCancelled, match=r"^the second was cancelled$"):
        await program()
    owner = asyncio.current_task()
    assert owner is not None
    assert owner.cancelling() == 0


async def ends_its_own(tasks: OwnTasks) -> None:
    tasks.cancel(await begun(tasks))


async def fails_with_a_task(tasks: OwnTasks) -> None:
    await begun(tasks)
    tasks.create_task(fail(), "the failing one")
    await wait()


async def fails_itself(tasks: OwnTasks) -> None:
    await begun(tasks)
    await fail()


@pytest.mark.parametrize(("body", "raised"), [(ends_its_own, None), (fails_with_a_task, "own"), (fails_itself, "own")])
async def test_cancellations_by_the_group_are_meant(
    body: Callable[[OwnTasks], Awaitable[None]], raised: str | None
) -> None:
    async def program() -> None:
        async with OwnTasks() as tasks:
            await body(tasks)

    if raised is None:
        await program()
        return
    with pytest.raises(ExceptionGroup) as group:
        await program()
    assert [type(one) for one in group.value.exceptions] == [LookupError]


@pytest.mark.parametrize("is_within", [True, False], ids=["in the block", "at its end"])
async def test_cancellation_of_the_owner_is_handed_on(is_within: bool) -> None:
    async def program() -> None:
        async with OwnTasks() as tasks:
            await begun(tasks)
            if is_within:
                await wait()

    owner = asyncio.create_task(program())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner


async def test_time_limit_around_the_group_is_a_time_limit() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), OwnTasks() as tasks:
            await begun(tasks)
