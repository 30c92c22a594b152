"""How a command ends that got no answer, by what is known of what it asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.client.attempts import Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown, Overloaded, QuorateError
from quorate.scripts.terminal.asking import ask


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


def test_question_to_nobody_is_a_mistake_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def question(client: ControllerClient) -> None:
        raise AssertionError("there is nobody to ask")

    with pytest.raises(typer.BadParameter, match="which controllers"):
        ask(None, None, question)
