"""Ctrl-C on `quorate apply` while the answer to a change is on its way, or never comes."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Ended, Terminal, end_of, start, terminal
from tests.waiting import eventually


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    """Topic orders has two partitions on 11, 12."""
    async with terminal({11: "a", 12: "b", 13: "a", 14: "b"}) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        yield typed


async def interrupted(user: Terminal, file: Path, *arguments: str, is_answered: bool) -> Ended:
    """What `apply` says where Ctrl-C is pressed when the change is written, and no answer has come yet."""
    quorum = user.stage.quorum

    async def is_written() -> bool:
        return quorum.log_end_offset > quorum.committed

    quorum.is_held = True
    process = await start(user.stage.urls[1], "apply", str(file), "--yes", *arguments)
    await eventually(is_written, "the change is in the log")
    process.send_signal(signal.SIGINT)
    if is_answered:
        quorum.is_held = False
        quorum.commit()
    ended = await end_of(process)
    quorum.is_held = False
    quorum.commit()
    return ended


async def test_answer_that_comes_after_ctrl_c_is_told(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    await user.run("topics", "delete", "orders", "--plan", str(file))
    ended = await interrupted(user, file, "--json", is_answered=True)
    assert ended.code == exit_codes.INTERRUPTED, ended
    (step,) = json.loads(ended.out)["steps"]
    assert (step["outcome"], [one["name"] for one in step["reply"]["responses"]]) == ("done", ["orders"])
    assert "Unclosed" not in ended.err, "its connections are closed in order"


async def test_moves_begun_before_ctrl_c_are_told_to_go_on(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    await user.run("brokers", "drain", "12", "--plan", str(file))
    ended = await interrupted(user, file, is_answered=True)
    assert (ended.code, "quorate: the moves go on; " in ended.err) == (exit_codes.INTERRUPTED, True), ended
    assert ": quorate undo " in ended.err


async def test_change_whose_answer_never_comes_is_named_after_ctrl_c(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    await user.run("brokers", "drain", "12", "--plan", str(file))
    ended = await interrupted(user, file, is_answered=False)
    assert (ended.code, ended.out) == (exit_codes.INTERRUPTED, ""), ended
    assert ": quorate history tells whether it was made\n" in ended.err
    assert "quorate: moves that were begun go on; the same `quorate apply` goes on with the plan, too\n" in ended.err


async def places(user: Terminal) -> list[tuple[list[int], int]]:
    """The replicas of the partitions of orders, in their order, and who leads."""
    _, reply, _ = await user.stage.ask(1, "GET", "/v1/topics/orders")
    return [(one["replica_nodes"], one["leader_id"]) for one in reply["topic"]["partitions"]]


async def test_plan_of_which_nothing_is_left_to_do_says_so(user: Terminal, tmp_path: Path) -> None:
    """A move to the same replicas in another order is over at once; one to another broker goes on."""
    for target, said in (
        ([12, 11], "quorate: all of it is so already; nothing was done\n"),
        ([13, 11], "quorate: all of it was asked for already; what is not over goes on\n"),
    ):
        moves, file = tmp_path / "moves.json", tmp_path / f"{target[0]}.json"
        moved = {"topic": "orders", "partition": 0, "replicas": target}
        moves.write_text(json.dumps({"version": 1, "partitions": [moved]}))
        await user.run("reassign", "apply", str(moves), "--plan", str(file))
        first = await user.run("apply", str(file), "--yes")
        assert (first.code, said in first.err) == (exit_codes.DONE, False), first
        end = user.stage.quorum.log_end_offset
        again = await user.run("apply", str(file))
        assert (again.code, again.out, again.err.endswith(said)) == (exit_codes.DONE, "", True), again
        assert user.stage.quorum.log_end_offset == end
        assert json.loads((await user.run("apply", str(file), "--json")).out)["steps"][0]["outcome"] == "earlier"


async def test_moves_that_are_taken_back_leave_the_replicas_in_the_order_that_they_had(
    user: Terminal, tmp_path: Path
) -> None:
    """Cancelled, a move from 11,12 to 13,12 leaves 12,11: another would be the preferred leader."""
    file = tmp_path / "plan.json"
    await user.run("brokers", "drain", "11", "--plan", str(file))
    before = await places(user)
    assert before == [([11, 12], 11), ([12, 11], 12)]

    async def are_open() -> bool:
        _, reply, _ = await user.stage.ask(1, "GET", "/v1/partition-reassignments")
        return sum(len(one["partitions"]) for one in reply["topics"]) == 2

    for attempt in ("first", "again: the plan finds all as it was made on"):
        process = await start(user.stage.urls[1], "apply", str(file), "--yes", "--wait", "--if-interrupted", "cancel")
        await eventually(are_open, "the moves are open")
        process.send_signal(signal.SIGINT)
        ended = await end_of(process)
        assert ended.code == exit_codes.INTERRUPTED, (attempt, ended)
        assert ended.err.endswith("quorate: moves that were not over, and were taken back: 2\n"), attempt
        assert await places(user) == before, attempt
