"""How long a client goes on where nobody takes its connections."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from quorate.controller.client.attempts import Attempts, Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import (
    Answer,
    BrokeOff,
    Connection,
    NoAnswer,
    NotAController,
    NotSent,
    Request,
    Untrusted,
)
from quorate.controller.protocol.altered_partitions import AlterPartitionColumns
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown, Overloaded
from tests.unit.own_time import passes, run_in_own_time
from tests.waiting import PATIENCE_S

PATIENT = Request("GET", "/v1/status", timeout_ms=600_000)
HERE = Answer(200, {}, b"{}")


class Scripted:
    """A connection that does one thing after another, the last one for ever."""

    def __init__(self, *outcomes: Exception | Answer) -> None:
        self._outcomes: Iterator[Exception | Answer] = iter(outcomes)
        self._last: Exception | Answer = outcomes[-1]
        self.asked = 0

    async def send(self, request: Request) -> Answer:
        self.asked += 1
        outcome = next(self._outcomes, self._last)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def attempts(*connections: Scripted, absent_ms: float | None) -> Attempts:
    return Attempts(cast("list[Connection]", connections), absent_ms)


async def test_nobody_there_ends_it_long_before_the_time_is_up() -> None:
    gone = Scripted(NotSent("refused"))
    with pytest.raises(Unreachable, match="no controller could be reached: refused; refused") as caught:
        await attempts(gone, Scripted(NotSent("refused")), absent_ms=100).send(PATIENT, is_repeatable=True)

    assert caught.value.is_nobody_there
    assert gone.asked > 1, "a restart takes a moment"


async def test_somebody_there_is_waited_for() -> None:
    """One that does not lead, or does not answer, is there."""
    refusals = [NotController(None, "no leader")] * 4
    silence = [NoAnswer("silent")] * 4
    absent = [NotSent("refused")] * 2
    late = Scripted(*refusals, *absent, *silence, *absent, HERE)

    assert await attempts(late, absent_ms=2_000).send(PATIENT, is_repeatable=True) is HERE


async def test_one_that_is_left_of_three_and_knows_of_no_active_one_ends_it_too() -> None:
    """No majority is there to elect one. A write that met one of the lost is of unknown outcome at once, as ever."""
    left = Scripted(NotController(None, "no leader"))
    lost = [Scripted(NotSent("refused")), Scripted(NotSent("refused"))]
    with pytest.raises(NotController, match="no leader"):
        await attempts(*lost, left, absent_ms=100).send(PATIENT, is_repeatable=False)

    cut_off = Scripted(HERE, NoAnswer("broke off"))
    with pytest.raises(OutcomeUnknown, match="broke off: the change may have been made"):
        await attempts(cut_off, *lost, absent_ms=100).send(PATIENT, is_repeatable=False)


async def test_read_that_a_controller_passed_on_to_one_that_fell_is_asked_again_and_a_write_is_not() -> None:
    fell = ApiError(ErrorCode.REQUEST_TIMED_OUT, "controller 2 did not answer: Connection reset by peer")
    assert await attempts(Scripted(fell, HERE), absent_ms=100).send(PATIENT, is_repeatable=True) is HERE
    assert await attempts(Scripted(fell), Scripted(HERE), absent_ms=100).send(PATIENT, is_repeatable=True) is HERE
    for sent, is_repeatable in ((replace(PATIENT, timeout_ms=300), True), (PATIENT, False)):
        with pytest.raises(ApiError, match="controller 2 did not answer"):
            await attempts(Scripted(fell), absent_ms=100).send(sent, is_repeatable=is_repeatable)


async def test_majority_that_is_there_is_waited_for() -> None:
    refusals = [NotController(None, "no leader")] * 8
    late = Scripted(*refusals, HERE)
    there = Scripted(NotController(None, "no leader"))
    gone = Scripted(NotSent("refused"))

    assert await attempts(gone, there, late, absent_ms=500).send(PATIENT, is_repeatable=True) is HERE


async def test_what_is_no_controller_is_passed_over_and_ends_it_at_once_where_it_is_all_there_is() -> None:
    stranger = Scripted(NotAController("http://web:80", "text/html, status 404"))
    assert (
        await attempts(stranger, Scripted(NotSent("refused"), HERE), absent_ms=None).send(PATIENT, is_repeatable=False)
        is HERE
    )

    stranger.asked = 0
    with pytest.raises(Unreachable, match=r"http://web:80 is no Quorate controller \(it answered text/html"):
        await attempts(stranger, absent_ms=None).send(PATIENT, is_repeatable=False)
    assert stranger.asked == 1


async def test_one_whose_tls_is_at_fault_ends_it_at_once_for_a_person_and_is_waited_for_by_a_program() -> None:
    """Certificates are exchanged file by file."""
    doubtful = Scripted(*[Untrusted("its certificate is not to be trusted")] * 3, HERE)
    with pytest.raises(Unreachable, match="not to be trusted"):
        await attempts(doubtful, absent_ms=60_000).send(PATIENT, is_repeatable=True)
    assert doubtful.asked == 1
    assert await attempts(doubtful, absent_ms=None).send(PATIENT, is_repeatable=True) is HERE


async def test_one_that_breaks_off_whatever_it_is_asked_ends_it_like_one_that_is_absent() -> None:
    """As the port of a quorum with TLS, of whoever is no voter. Something is there: who asks may not conclude more."""
    breaking = attempts(Scripted(BrokeOff("broke off")), absent_ms=400)
    with pytest.raises(Unreachable, match="broke off") as caught:
        async with asyncio.timeout(PATIENCE_S):
            await breaking.send(PATIENT, is_repeatable=True)
    assert not caught.value.is_nobody_there


async def test_without_a_bound_the_request_is_what_ends_it() -> None:
    gone = Scripted(*[NotSent("refused")] * 5, HERE)
    assert await attempts(gone, absent_ms=None).send(PATIENT, is_repeatable=True) is HERE

    short = Request("GET", "/v1/status", timeout_ms=300)
    with pytest.raises(Unreachable):
        await attempts(Scripted(NotSent("refused")), absent_ms=None).send(short, is_repeatable=True)


async def test_isr_changes_that_got_no_answer_are_not_sent_to_another_controller() -> None:
    """A refusal of the second copy would say nothing of the first, which may still arrive."""
    lost, other = Scripted(NoAnswer("silent")), Scripted(HERE)
    columns = AlterPartitionColumns(
        topic_ids=np.zeros((1, 16), np.uint8),
        partition_ids=np.zeros(1, np.int32),
        leader_epochs=np.zeros(1, np.int32),
        partition_epochs=np.zeros(1, np.int32),
        leader_recovery_states=np.zeros(1, np.int8),
        new_isr=np.ones((1, 1), np.int32),
        new_isr_epochs=np.ones((1, 1), np.int64),
    )
    client = ControllerClient(["http://127.0.0.1:1"], sender=attempts(lost, other, absent_ms=None))
    with pytest.raises(OutcomeUnknown):
        await client.alter_partition_columns(1, 1, columns)
    assert other.asked == 0


async def test_time_that_ran_out_between_two_rounds_hides_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a process that was frozen while it paused."""
    loop = asyncio.get_running_loop()
    clock = loop.time

    class Frozen(Scripted):
        async def send(self, request: Request) -> Answer:
            loop.call_soon(monkeypatch.setattr, loop, "time", lambda: clock() + 3600)
            return await super().send(request)

    left = Frozen(NotController(None, "no leader"))
    with pytest.raises(NotController, match="no leader") as caught:
        await attempts(left, absent_ms=None).send(PATIENT, is_repeatable=False)
    assert (left.asked, isinstance(caught.value, Unreachable)) == (1, False)


def test_controller_that_has_too_much_to_do_is_left_alone_for_as_long_as_it_says_and_then_the_next_is_asked() -> None:
    busy, other = Scripted(Overloaded("much waits", retry_after_ms=2_500)), Scripted(Overloaded("I too"), HERE)
    both = attempts(busy, other, absent_ms=None)

    async def story() -> None:
        clock = asyncio.get_running_loop().time
        asked = asyncio.create_task(both.send(PATIENT, is_repeatable=False))
        await passes(2.4)
        assert (busy.asked, other.asked, str(both.overload)) == (1, 0, "much waits")
        await passes(0.2)
        assert (busy.asked, other.asked, str(both.overload)) == (1, 1, "I too")
        assert await asked is HERE
        # Where nobody knows how long it takes it is a second; the first one is as busy as before.
        assert (busy.asked, other.asked) == (2, 2)
        assert both.overload is None
        assert clock() == pytest.approx(6.0)

    run_in_own_time(story)


def test_who_would_have_to_wait_beyond_his_time_is_told_so_at_once() -> None:
    async def story() -> None:
        clock = asyncio.get_running_loop().time
        question = Request("POST", "/v1/topics", timeout_ms=8_000)
        busy = Scripted(Overloaded("much waits", retry_after_ms=3_000))
        with pytest.raises(Overloaded) as refused:
            await attempts(busy, absent_ms=None).send(question, is_repeatable=False)
        assert str(refused.value) == "much waits (asked 3 times in 6.0 s; try again in 3.0 s)"
        assert (refused.value.details, busy.asked, clock()) == ({"retry_after_ms": 3_000}, 3, 6.0)

    run_in_own_time(story)
