"""What programs read of every command: the form of its answer, as of when it is true, and the form of its failure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.programs.documents import SCHEMA_VERSION
from tests.integration.commands import Terminal, alone, terminal

READS = (
    "status", "cluster describe", "quorum describe", "quorum controllers", "brokers list", "brokers describe 11",
    "brokers feed", "topics list", "topics describe orders", "topics deletions", "partitions list",
    "partitions describe orders-0", "reassign list", "configs describe topic/orders", "features describe",
    "labels list", "quotas list", "users list", "acls list", "tokens list", "explain", "can-stop broker 11",
    "what-if stop broker 11",
)  # fmt: skip
#: With how many answers: those that can be given about the past, whose state is known.
PAST = ("cluster describe", "topics list", "partitions list", "quorum describe", "status")


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    async with terminal({11: "a", 12: "b"}) as typed:
        made = await typed.run("topics", "create", "orders", "--replica-assignment", "11:12")
        assert made.code == exit_codes.DONE, made
        yield typed


async def answer(user: Terminal, *arguments: str) -> dict[str, Any]:
    ended = await user.run(*arguments, "--json")
    (line,) = ended.out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


async def test_answers_say_in_which_form_and_as_of_when_they_are(user: Terminal) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=1)
    end = user.stage.quorum.committed
    for command in READS:
        document = await answer(user, *command.split())
        assert list(document)[:2] == ["schema_version", "as_of"], command
        assert document["schema_version"] == SCHEMA_VERSION, command
        assert isinstance(document["as_of"]["offset"], int), (command, document["as_of"])
        assert end <= document["as_of"]["offset"] <= user.stage.quorum.committed, (command, document["as_of"], end)
        assert begun < datetime.fromisoformat(document["as_of"]["time"]) <= datetime.now(UTC), command


async def test_answer_about_an_old_state_is_as_of_that_state(user: Terminal) -> None:
    at = user.stage.quorum.committed - 1
    for command in PAST:
        document = await answer(user, *command.split(), "--at", str(at))
        assert document["as_of"]["offset"] == at, command
    unknown = await answer(user, "brokers", "list", "--at", str(at))
    assert unknown["as_of"]["offset"] is None


async def test_refusals_are_documents_on_standard_error(user: Terminal) -> None:
    again = await user.run("topics", "create", "orders", "--replica-assignment", "11", "--json")
    assert json.loads(again.out)["topics"][0]["error_code"] == 36
    refused = json.loads(again.err.splitlines()[-1])
    assert refused == {
        "error": "TOPIC_ALREADY_EXISTS",
        "message": "orders: Topic 'orders' already exists. (TOPIC_ALREADY_EXISTS)",
        "retriable": "no",
        "exit_code": exit_codes.REFUSED,
    }
    several = await user.run("topics", "create", "orders", "new", "--replica-assignment", "11", "--json")
    assert json.loads(several.err)["message"].endswith("(TOPIC_ALREADY_EXISTS); 1 of 2 failed")
    unsaid = await user.run("topics", "delete", "orders", "--json")
    assert (unsaid.code, unsaid.out, json.loads(unsaid.err)["error"]) == (exit_codes.USAGE, "", "USAGE")


async def test_nobody_there_is_a_document_too() -> None:
    ended = await alone("topics", "list", "--json", "--controllers", "nosuchhost.invalid")
    assert (ended.code, json.loads(ended.err)["error"]) == (exit_codes.USAGE, "USAGE")
