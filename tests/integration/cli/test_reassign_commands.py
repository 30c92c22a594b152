"""`quorate reassign` and `quorate elect` against controllers behind real HTTP servers."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Terminal, answered, end_of, start, terminal
from tests.waiting import eventually

Move = tuple[str, int, list[int]]
ONE = '{"topic": "a", "partition": 0, "replicas": [1]}'


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    """Topic orders has two partitions on 11, 12; nobody copies anything unless a test says so."""
    async with terminal({11: "a", 12: "b", 13: "a", 14: "b"}) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        yield typed


def plan_file(directory: Path, moves: Iterable[Move]) -> str:
    path = directory / "plan.json"
    partitions = [{"topic": topic, "partition": number, "replicas": ids} for topic, number, ids in moves]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


async def described(user: Terminal, partition: str) -> dict[str, Any]:
    reply = json.loads((await user.run("partitions", "describe", partition, "--json")).out)
    found: dict[str, Any] = reply["partitions"][0]["partition"]
    return found


async def test_plan_is_applied_watched_and_rolled_back(user: Terminal, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    planned = await user.run("reassign", "plan", "orders", "--brokers", "13-14", "--out", plan)
    assert planned.code == exit_codes.DONE, planned
    assert planned.out.splitlines()[0] == "Current partition replica assignment"
    proposed = json.loads(planned.out.splitlines()[-1])
    assert [(one["partition"], one["replicas"]) for one in proposed["partitions"]] == [(0, [13, 14]), (1, [14, 13])]
    assert planned.out == (await user.run("reassign", "plan", "orders", "--brokers", "13,14")).out

    applied = await user.run("reassign", "apply", plan)
    assert (applied.code, applied.err) == (exit_codes.DONE, "")
    lines = applied.out.splitlines()
    rollback = json.loads(lines[1])
    assert [one["replicas"] for one in rollback["partitions"]] == [[11, 12], [12, 11]]
    assert lines[-2:] == ["orders-0: moves to 13,14.", "orders-1: moves to 14,13."]
    listed = await user.run("reassign", "list")
    assert listed.cells[1] == ["orders", "0", "13,14,11,12", "13,14", "11,12"]
    half = await user.run("reassign", "verify", plan)
    assert (half.code, half.out.splitlines()[0]) == (
        exit_codes.REFUSED, "Reassignment of partition orders-0 is still in progress.",
    )  # fmt: skip
    again = await user.run("reassign", "apply", plan)
    assert (again.code, again.err.startswith("quorate: 2 reassignments are open")) == (exit_codes.REFUSED, True)

    for partition in ("orders-0", "orders-1"):
        await user.catch_up(partition)
    done = await user.run("reassign", "verify", plan)
    assert (done.code, done.out.splitlines()[1]) == (
        exit_codes.DONE, "Reassignment of partition orders-1 is completed.",
    )  # fmt: skip
    assert (await user.run("reassign", "list")).out == "No reassignment is open.\n"
    assert answered((await user.run("reassign", "list", "--json")).out) == {"topics": []}

    back = tmp_path / "back.json"
    back.write_text(lines[1])
    status = json.loads((await user.run("reassign", "verify", str(back), "--json")).out)["partitions"][0]
    assert (status["status"], status["replicas"], status["target"]) == ("different", [13, 14], [11, 12])


async def test_apply_waits_until_all_is_moved(user: Terminal, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, [("orders", 0, [11, 13]), ("orders", 1, [12])])

    async def is_open() -> bool:
        _, reply, _ = await user.stage.ask(1, "GET", "/v1/partition-reassignments")
        return bool(reply["topics"])

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(user.run("reassign", "apply", plan, "--wait", "--json"))
        await eventually(is_open, "the reassignment is open")
        assert not waiting.done()
        await user.catch_up("orders-0")
    ended = waiting.result()
    applied = json.loads(ended.out)
    assert (ended.code, [one["status"] for one in applied["moved"]["partitions"]]) == (0, ["complete", "complete"])
    assert [one["replicas"] for one in applied["rollback"]["partitions"]] == [[11, 12], [12, 11]]


async def test_interrupt_ends_the_waiting_and_not_the_moves(user: Terminal, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, [("orders", 0, [11, 13])])
    process = await start(user.stage.urls[1], "reassign", "apply", plan, "--wait")
    assert process.stdout is not None
    seen = [(await process.stdout.readline()).decode() for _ in range(4)]
    assert seen[3] == "orders-0: moves to 11,13.\n"
    process.send_signal(signal.SIGINT)
    ended = await end_of(process)
    assert (ended.code, ended.out) == (exit_codes.INTERRUPTED, "")
    assert "Traceback" not in ended.err
    assert "quorate: the moves go on by themselves; to see how far they are: quorate reassign verify" in ended.err
    assert (await user.run("reassign", "list")).cells[1][:2] == ["orders", "0"]


async def test_open_reassignments_are_cancelled(user: Terminal, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, [("orders", 0, [11, 13]), ("orders", 1, [12, 14])])
    await user.run("reassign", "apply", plan)
    asked = await user.run("reassign", "cancel", "--all")
    assert (asked.code, "to cancel 2 reassignments, say --yes" in asked.said) == (exit_codes.USAGE, True)
    one = plan_file(tmp_path, [("orders", 1, [12, 14]), ("orders", 7, [12])])
    assert (await user.run("reassign", "cancel", one, "--yes")).out == "orders-1: cancelled.\n"
    assert (await user.run("reassign", "cancel", "--all", "--yes")).out == "orders-0: cancelled.\n"
    ended = await user.run("reassign", "cancel", "--all", "--yes")
    assert ended == (exit_codes.DONE, "None of these reassignments is open.\n", "")
    assert (await described(user, "orders-0"))["replica_nodes"] == [11, 12]


async def test_move_that_is_refused_is_named_beside_those_that_are_made(user: Terminal, tmp_path: Path) -> None:
    plan = plan_file(tmp_path, [("orders", 0, [11, 13]), ("orders", 1, [77])])
    ended = await user.run("reassign", "apply", plan, "--wait")
    assert (ended.code, ended.out.splitlines()[-1]) == (exit_codes.REFUSED, "orders-0: moves to 11,13.")
    assert ended.err.splitlines()[0].startswith("quorate: orders-1: The manual partition assignment includes broker 77")
    assert ended.err.splitlines()[1] == "quorate: 1 of 2 failed"


async def test_leaders_are_elected(user: Terminal, tmp_path: Path) -> None:
    ended = await user.run("elect", "--type", "preferred", "--topic", "orders", "--partition", "0")
    assert ended == (exit_codes.DONE, "orders-0: no election is needed.\n", "")
    ended = await user.run("elect", "--type", "preferred", "--all")
    assert ended == (exit_codes.DONE, "No partition needs an election.\n", "")
    await user.run("reassign", "apply", plan_file(tmp_path, [("orders", 0, [12, 11])]))
    path = tmp_path / "elect.json"
    path.write_text('{"partitions": [{"topic": "orders", "partition": 0}, {"topic": "none", "partition": 1}]}')
    ended = await user.run("elect", "--type", "preferred", "--path", str(path))
    assert (ended.code, ended.out) == (exit_codes.REFUSED, "orders-0: a leader was elected.\n")
    assert "none-1: No such topic" in ended.err
    assert (await described(user, "orders-0"))["leader_id"] == 12
    asked = await user.run("elect", "--type", "unclean", "--all")
    assert (asked.code, "say --yes" in asked.said) == (exit_codes.USAGE, True)
    ended = await user.run("elect", "--type", "unclean", "--all", "--yes", "--json")
    assert (ended.code, answered(ended.out)) == (exit_codes.DONE, {"replica_election_results": []})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "EOF"),
        ("[]", "should be an object"),
        ('{"version": 2, "partitions": []}', "version: Input should be 1, not 2"),
        ('{"version": 1}', "partitions: must be given"),
        ('{"version": 1, "partitions": []}', "at least 1 item"),
        ('{"partitions": [{"topic": "a", "partition": -1, "replicas": [1]}]}', "greater than or equal to 0, not -1"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "at least 1 item"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": ["1"]}]}', "valid integer"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/d"]}]}', "should be 'any'"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "x": 1}]}', "partitions.0.x: is not known"),
        ('{"partitions": [' + ",".join([ONE] * 2) + "]}", "more than once"),
        ('{"partitions": [' + ",".join([ONE] * 10_001) + "]}", "at most"),
        (" " * (16 * 1024 * 1024 + 1), "is the most"),
    ],
    ids=range(13),
)  # fmt: skip
async def test_file_that_is_no_plan_is_wrong_usage(user: Terminal, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    ended = await user.run("reassign", "apply", str(path))
    assert (ended.code, ended.out) == (exit_codes.USAGE, "")
    assert says in ended.said
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("reassign", "apply", "/nowhere/plan.json"), exit_codes.USAGE, "cannot be read"),
        (("reassign", "plan", "--brokers", "11"), exit_codes.USAGE, "which topics"),
        (("reassign", "plan", "none", "--brokers", "11"), exit_codes.REFUSED, "no topic matches"),
        (("reassign", "plan", "orders", "--brokers", "99"), exit_codes.REFUSED, "broker 99 is not registered"),
        (("reassign", "plan", "orders", "--brokers", "11"), exit_codes.REFUSED, "2 replicas need as many brokers"),
        (("reassign", "plan", "orders", "--brokers", "a-b"), exit_codes.USAGE, "no broker id"),
        (("reassign", "plan", "orders", "--brokers", "14-11"), exit_codes.USAGE, "is no range"),
        (("reassign", "cancel",), exit_codes.USAGE, "which reassignments"),
        (("elect", "--type", "preferred"), exit_codes.USAGE, "which partitions"),
        (("elect", "--type", "preferred", "--all", "--topic", "a"), exit_codes.USAGE, "which partitions"),
        (("elect", "--type", "preferred", "--topic", "a"), exit_codes.USAGE, "which partitions"),
        (("elect", "--type", "dirty", "--all"), exit_codes.USAGE, "dirty"),
        (("elect", "--type", "preferred", "--topic", "a", "--partition", "0"), exit_codes.REFUSED, "No such topic"),
    ],
)  # fmt: skip
async def test_bad_command_ends_with_a_sentence(
    user: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = await user.run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.said
    assert "Traceback" not in ended.err


async def test_plan_that_names_a_partition_that_is_not_there_is_refused_as_a_whole(
    user: Terminal, tmp_path: Path
) -> None:
    ended = await user.run("reassign", "apply", plan_file(tmp_path, [("orders", 0, [13]), ("orders", 9, [13])]))
    assert ended == (exit_codes.REFUSED, "", "quorate: there is no partition orders-9\n")
    assert (await user.run("reassign", "list")).out == "No reassignment is open.\n"
