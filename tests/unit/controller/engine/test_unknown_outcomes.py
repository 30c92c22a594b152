"""What a client is told of a write that failed when it was begun, half-way, or all but done."""

from __future__ import annotations

import asyncio

import pytest

from quorate.controller.decisions.decision import Decision, Slice
from quorate.controller.engine.head import Head
from quorate.controller.engine.interfaces import WriteContext
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown
from tests.unit.controller.manual_quorum import Bench, topic, writes


@pytest.fixture
def bench() -> Bench:
    """An active controller whose activation has committed."""
    bench = Bench()
    bench.lead()
    bench.commit()
    return bench


def names(bench: Bench) -> set[str]:
    return set(bench.controller.stable.topics.by_name)


def in_slices(*slices: Slice) -> Decision[str]:
    return Decision((), "done", is_atomic=False, is_internal=True, slices=slices)


async def begun(bench: Bench, decision: Decision[str], turns: int) -> asyncio.Task[str]:
    """A pass, so many turns of the loop on."""
    task = asyncio.create_task(bench.controller.append_write_event("pass", lambda _: decision))
    await asyncio.sleep(0)
    for _ in range(turns):
        bench.scheduler.run_turn()
    return task


async def test_append_refused_in_the_middle_of_an_event_renounces(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch before it is full and must leave first. The head has what the log has not: no epoch can go on so."""
    monkeypatch.setattr(Head, "fits", lambda self, _: self._open.record_count == 0)
    bench.quorum.fail_next_append = NotController(2)
    first = asyncio.create_task(bench.controller.append_write_event("first", writes(topic(1))))
    second = asyncio.create_task(bench.controller.append_write_event("second", writes(topic(2))))
    await bench.settle()
    assert not bench.controller.is_active
    with pytest.raises(OutcomeUnknown):
        await first
    with pytest.raises(NotController):
        await second
    assert bench.quorum.leader_id is None


async def test_pass_that_fails_after_a_slice_is_of_unknown_outcome(bench: Bench) -> None:
    def refuse(_: object) -> list[object]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    task = await begun(bench, in_slices(lambda _: [topic(1)], refuse), turns=5)  # type: ignore[arg-type]
    with pytest.raises(OutcomeUnknown, match="in part: no"):
        await task
    bench.commit()
    assert names(bench) == {"topic-1"}


async def test_pass_whose_first_slice_fails_is_refused(bench: Bench) -> None:
    def refuse(_: object) -> list[object]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    task = await begun(bench, in_slices(refuse, lambda _: [topic(1)]), turns=5)  # type: ignore[arg-type]
    with pytest.raises(ApiError) as raised:
        await task
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert bench.quorum.log_end_offset == bench.quorum.committed


async def test_pass_that_is_closed_half_way_is_of_unknown_outcome(bench: Bench) -> None:
    slices = [lambda _, n=n: [topic(n)] for n in range(5)]
    task = await begun(bench, in_slices(*slices), turns=2)
    bench.controller.close()
    with pytest.raises(OutcomeUnknown):
        await task
    bench.controller.on_commit(bench.quorum.take_committed(10))
    assert names(bench) == {"topic-0", "topic-1"}


async def test_soft_state_that_cannot_follow_a_decision_is_a_fault_and_nothing_is_written(bench: Bench) -> None:
    def applied(_: Decision[object], __: int) -> None:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, "no such broker")

    task = asyncio.create_task(bench.controller.append_write_event("write", writes(topic(1)), applied=applied))
    await bench.settle()
    with pytest.raises(ApiError) as raised:
        await task
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert [what for what, _ in bench.faults.seen] == ["write"]
    assert not bench.controller.is_active
    assert bench.quorum.log_end_offset == bench.quorum.committed


async def test_what_an_event_lets_out_does_not_hold_up_the_others(bench: Bench) -> None:
    def explode(_: object) -> None:
        raise ZeroDivisionError

    bench.controller.on_decided = explode
    first = asyncio.create_task(bench.controller.append_write_event("first", writes(topic(1))))
    second = asyncio.create_task(bench.controller.append_write_event("second", writes(topic(2))))
    await asyncio.sleep(0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            bench.scheduler.run_turn()
    bench.commit()
    assert [await first, await second] == ["done", "done"]


async def test_linearizable_read_that_waits_when_the_controller_closes_is_told(bench: Bench) -> None:
    bench.quorum.committed += 1  # committed, and not handed over
    read = asyncio.create_task(bench.controller.append_read_event(lambda _: None, is_linearizable=True))
    await bench.settle()
    bench.controller.close()
    with pytest.raises(ApiError, match="shutting down"):
        await read


async def test_caller_who_leaves_takes_its_answer_with_it(bench: Bench) -> None:
    """Nobody hears of the failure of a write whose caller has gone, neither does the loop's exception handler."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def refuse(_: WriteContext) -> Decision[None]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    task = asyncio.create_task(bench.controller.append_write_event("bad", refuse, timeout_ms=10_000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    bench.scheduler.run()
    await asyncio.sleep(0)
    assert complaints == []
