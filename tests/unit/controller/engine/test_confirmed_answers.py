"""What is answered only once leadership is confirmed: findings, refusals, linearizable reads."""

from __future__ import annotations

import asyncio

import pytest

from quorate.controller.api.errors import retriable
from quorate.controller.decisions.decision import Decision
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown, Overloaded
from tests.default_parts import controller_limits
from tests.unit.controller.manual_quorum import Bench, refuse, started, topic, writes


@pytest.fixture
def bench() -> Bench:
    """An active controller whose activation has committed."""
    bench = Bench()
    bench.lead()
    bench.commit()
    return bench


async def test_decision_without_records_is_answered_once_a_majority_has_confirmed_leadership(bench: Bench) -> None:
    bench.quorum.is_followed = False
    tasks = [
        await started(bench, bench.controller.append_write_event("look", writes(reply=7))),
        await started(bench, bench.controller.append_write_event("refuse", refuse)),
    ]
    bench.commit()
    assert not any(task.done() for task in tasks)
    assert bench.controller.pending_replies == 2
    bench.quorum.confirm()
    assert await tasks[0] == 7
    with pytest.raises(ApiError, match="no"):
        await tasks[1]
    assert bench.controller.pending_replies == 0


async def test_decisions_without_records_of_one_turn_are_confirmed_by_one_round(bench: Bench) -> None:
    bench.quorum.is_followed = False
    operations = [writes(reply=7), refuse, writes(topic(1)), writes(reply=8)]
    tasks = [asyncio.create_task(bench.controller.append_write_event("look", one)) for one in operations]
    await bench.settle()
    assert len(bench.quorum.barriers) == 1
    bench.commit()
    bench.quorum.confirm()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [results[0], results[2], results[3]] == [7, "done", 8]


async def test_commit_of_what_it_rests_on_confirms_no_decision_without_records(bench: Bench) -> None:
    """The acknowledgements of the first write may be older than the second request, and its leader deposed since."""
    first = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.quorum.is_followed = False
    second = await started(bench, bench.controller.append_write_event("look", writes(reply=7)))
    bench.commit()
    assert await first == "done"
    await bench.settle()
    assert not second.done()
    bench.lose()
    with pytest.raises(NotController):
        await second


@pytest.mark.parametrize("is_refused", [False, True])
async def test_leadership_lost_before_it_is_confirmed_is_retriable_for_nothing_was_written(
    bench: Bench, is_refused: bool
) -> None:
    bench.quorum.is_followed = False
    operation = refuse if is_refused else writes(reply=7)
    task = await started(bench, bench.controller.append_write_event("look", operation))
    bench.lose()
    with pytest.raises(NotController) as raised:
        await task
    assert not isinstance(raised.value, OutcomeUnknown)
    assert retriable(raised.value) == "yes"


@pytest.mark.parametrize("is_refused", [False, True])
async def test_answer_that_wrote_nothing_and_is_not_confirmed_in_time_says_so(bench: Bench, is_refused: bool) -> None:
    bench.quorum.is_followed = False
    operation = refuse if is_refused else writes(reply=7)
    task = asyncio.create_task(bench.controller.append_write_event("look", operation, timeout_ms=1))
    await bench.settle()
    with pytest.raises(ApiError, match="look changed nothing, and nobody confirmed within 2 ms") as raised:
        await task
    assert not isinstance(raised.value, OutcomeUnknown)
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert retriable(raised.value) == "yes"


async def test_heartbeat_that_changes_nothing_is_not_confirmed(bench: Bench) -> None:
    bench.quorum.is_followed = False
    task = await started(
        bench, bench.controller.append_write_event("heartbeat", lambda _: Decision((), "stay", is_finding=False))
    )
    assert await task == "stay"
    assert bench.quorum.barriers == []


async def test_events_of_its_own_ask_nobody(bench: Bench) -> None:
    bench.controller.events.append(bench.controller.write_internally("look", writes()))
    await bench.settle()
    assert bench.quorum.barriers == []
    assert bench.controller.pending_replies == 0


async def test_closing_refuses_what_waits_to_be_confirmed(bench: Bench) -> None:
    bench.quorum.is_followed = False
    task = await started(bench, bench.controller.append_write_event("look", writes(reply=7)))
    bench.controller.close()
    with pytest.raises(ApiError, match="shutting down") as raised:
        await task
    assert not isinstance(raised.value, OutcomeUnknown)


async def test_answers_that_wait_to_be_confirmed_are_bounded() -> None:
    bench = Bench(controller_limits(queue_length_max=3))
    bench.lead()
    bench.commit()
    bench.quorum.is_followed = False
    tasks = [await started(bench, bench.controller.append_write_event("look", writes(reply=n))) for n in range(3)]
    with pytest.raises(Overloaded, match="3 answers wait until leadership is confirmed"):
        await bench.controller.append_write_event("look", writes(reply=3))
    bench.quorum.confirm()
    assert await asyncio.gather(*tasks) == [0, 1, 2]


async def test_linearizable_read_waits_until_its_barrier_is_applied(bench: Bench) -> None:
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    batches = bench.quorum.take_committed(1)  # committed, and not yet handed to this controller
    read = await started(
        bench, bench.controller.append_read_event(lambda image: len(image.topics), is_linearizable=True)
    )
    stale = await bench.controller.append_read_event(lambda image: len(image.topics))
    assert stale == 0
    assert not read.done()
    bench.controller.on_commit(batches)
    assert await read == 1
    await task


async def test_reads_that_wait_to_be_confirmed_are_bounded_also_where_nobody_waits_any_more() -> None:
    bench = Bench(controller_limits(queue_length_max=2))
    bench.lead()
    bench.commit()
    bench.quorum.is_followed = False

    async def count() -> int:
        return await bench.controller.append_read_event(lambda image: len(image.topics), is_linearizable=True)

    waiting, given_up = await started(bench, count()), await started(bench, count())
    given_up.cancel()
    refused = await started(bench, count())
    with pytest.raises(Overloaded, match="2 reads wait until leadership is confirmed, 2 is the most"):
        refused.result()
    bench.quorum.confirm()
    assert await waiting == 0
    again = await started(bench, count())
    bench.quorum.confirm()
    assert await again == 0
