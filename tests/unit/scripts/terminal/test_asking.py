"""How a command ends that got no answer, by what is known of what it asked for."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path

import pytest
import typer

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.client.attempts import Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown, Overloaded, QuorateError
from quorate.scripts.terminal import asking
from quorate.scripts.terminal.asking import answered, ask


def asked(error: QuorateError, about: str | None = None) -> None:
    async def question(client: ControllerClient) -> None:
        raise error

    ask("127.0.0.1:1", None, question, about=about)


@pytest.mark.parametrize("error", [Unreachable(["nobody there"]), OutcomeUnknown("read before repeating it")])
def test_question_without_an_answer_is_what_it_is_and_names_nothing_that_it_was_about(error: QuorateError) -> None:
    with pytest.raises(type(error)) as ended:
        asked(error, about="orders")
    assert ended.value is error


def test_refusal_is_the_callers() -> None:
    with pytest.raises(ApiError, match="no such topic"):
        asked(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ApiError(ErrorCode.INVALID_CONFIG, "no such config", {"at": 1}), "orders: no such config"),
        (HttpRefusal(401, "the shared secret is missing"), "the shared secret is missing"),
        (Overloaded("too much waits"), "too much waits"),
    ],
)
def test_refusal_names_the_one_thing_that_it_is_of_and_of_the_request_it_names_none(
    error: ApiError, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        asked(error, about="orders")
    assert (refused.value.code, refused.value.message, refused.value.details) == (error.code, message, error.details)


def test_refusal_of_an_empty_name_shows_it() -> None:
    with pytest.raises(ApiError) as refused:
        asked(ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "it is empty"), about="")
    assert refused.value.message == "'': it is empty"


def test_question_to_nobody_is_a_mistake_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def question(client: ControllerClient) -> None:
        raise AssertionError("there is nobody to ask")

    with pytest.raises(typer.BadParameter, match="which controllers"):
        ask(None, None, question)


class Change:
    """A change that is sent, while whose answer is awaited Ctrl-C is pressed."""

    def __init__(self, *, answer_s: float = 0.0, refusal: QuorateError | None = None, presses: int = 1) -> None:
        """``answer_s``: seconds from the Ctrl-C to the answer. ``presses``: of Ctrl-C."""
        self.answer_s = answer_s
        self.refusal = refusal
        self.presses = presses
        self.is_cut_off = False

    async def __call__(self) -> str:
        loop, has_come = asyncio.get_running_loop(), asyncio.Event()
        for _ in range(self.presses):
            loop.call_soon(signal.raise_signal, signal.SIGINT)
        loop.call_later(self.answer_s, has_come.set)
        try:
            await has_come.wait()
        except asyncio.CancelledError:
            self.is_cut_off = True
            raise
        if self.refusal is not None:
            raise self.refusal
        return "2 moves begun"


def told_of(change: Change) -> list[str]:
    """What is known of a change when the command has been ended by Ctrl-C."""
    told: list[str] = []

    async def noted() -> None:
        told.append(await change())

    async def question(client: ControllerClient) -> None:
        await answered(noted())
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        ask("127.0.0.1:1", None, question)
    return told


def test_ctrl_c_waits_for_the_answer_to_a_change_that_was_sent() -> None:
    assert told_of(Change(answer_s=0.05)) == ["2 moves begun"]


def test_ctrl_c_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_LAST_ANSWER_S", 0.01)
    change = Change(answer_s=60.0)
    assert (told_of(change), change.is_cut_off) == ([], True)


def test_second_ctrl_c_waits_for_nothing() -> None:
    change = Change(answer_s=60.0, presses=2)
    assert (told_of(change), change.is_cut_off) == ([], True)


def test_refusal_that_comes_after_ctrl_c_is_not_told() -> None:
    assert told_of(Change(answer_s=0.01, refusal=OutcomeUnknown("read before repeating it"))) == []


def test_change_that_nobody_interrupts_is_answered_or_refused() -> None:
    async def question(client: ControllerClient) -> str:
        return await answered(Change(presses=0)())

    assert ask("127.0.0.1:1", None, question) == "2 moves begun"

    async def refused(client: ControllerClient) -> None:
        await answered(Change(presses=0, refusal=ApiError(ErrorCode.INVALID_CONFIG, "no such config"))())

    with pytest.raises(ApiError, match="no such config"):
        ask("127.0.0.1:1", None, refused)


class LateRunner(asyncio.Runner):  # type: ignore[misc]
    """Ctrl-C is pressed when it hears of that already, and before it sets its count to 0, as it begins to run."""

    @property
    def _interrupt_count(self) -> int:
        return self._count

    @_interrupt_count.setter
    def _interrupt_count(self, count: int) -> None:
        if not count and isinstance(signal.getsignal(signal.SIGINT), partial):
            signal.raise_signal(signal.SIGINT)
        self._count = count


def test_ctrl_c_in_the_moment_in_which_a_question_begins_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "Runner", LateRunner)
    asked = list[ControllerClient]()

    async def question(client: ControllerClient) -> None:
        asked.append(client)

    with pytest.raises(KeyboardInterrupt):
        ask("http://127.0.0.1:9", None, question)
    assert asked == []
