"""`--plan` and `quorate apply` against controllers behind real HTTP servers: looked at, then made, or refused."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.terminal import exit_codes
from quorate.snapshots.image_digest import ImageDigest, digest_image
from tests.integration.commands import Ended, Terminal, end_of, start, terminal
from tests.waiting import eventually


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[Terminal]:
    """Topic orders has two partitions on 11, 12; bo may read it, and has a password."""
    async with terminal({11: "a", 12: "b", 13: "a", 14: "b"}) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        await typed.run("acls", "add", "topic/orders", "--operation", "read", "--principal", "User:bo")
        (tmp_path / "password").write_text("hush hush")
        (tmp_path / "password").chmod(0o600)
        password = ("--mechanism", "SCRAM-SHA-256", "--password-file", str(tmp_path / "password"))
        assert (await typed.run("users", "set", "bo", *password)).code == exit_codes.DONE
        yield typed


def state(user: Terminal) -> ImageDigest:
    return digest_image(user.stage.members[1].controller.stable)


async def planned(user: Terminal, file: Path, *command: str) -> Ended:
    """The command with `--plan`, which changed nothing."""
    before = state(user)
    ended = await user.run(*command, "--plan", str(file))
    assert (ended.code, state(user)) == (exit_codes.DONE, before), ended
    assert ended.out.endswith(f"Nothing was changed. The plan is in {file}: quorate apply {file}\n")
    assert mode_of(file) == 0o600
    return ended


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


async def refused(user: Terminal, file: Path) -> list[str]:
    """What `apply` says where something has changed, and that it changed nothing."""
    before = state(user)
    ended = await user.run("apply", str(file), "--yes")
    assert (ended.code, state(user), ended.out) == (exit_codes.REFUSED, before, ""), ended
    *changes, last = ended.err.splitlines()
    assert last == "quorate: that has changed since the plan was made; nothing was done"
    told = await user.run("apply", str(file), "--yes", "--json")
    sentences = [line.removeprefix("quorate: ") for line in (*changes, last)]
    assert (told.code, told.out, json.loads(told.err)) == (ended.code, "", refusal_of(*sentences))
    return changes


def refusal_of(*sentences: str) -> dict[str, Any]:
    """The document of docs/operations.md that tells programs of it."""
    return {"error": "REFUSED", "message": "; ".join(sentences), "retriable": "no", "exit_code": exit_codes.REFUSED}


async def topic(user: Terminal, name: str) -> dict[str, Any]:
    _, reply, _ = await user.stage.ask(1, "GET", f"/v1/topics/{name}")
    found: dict[str, Any] = reply["topic"]
    return found


#: A command, what its plan says, what makes it impossible, and how that is named.
CHANGES = [
    (
        ("topics", "create", "new", "--partitions", "2", "--config", "retention.ms=1"),
        "create topic new: partitions 2, replication factor 1, retention.ms=1",
        ("topics", "create", "new"),
        "there is a topic new now",
    ),
    (
        ("topics", "add-partitions", "orders", "--partitions", "6"),
        "grow topic orders from 2 to 6 partitions",
        ("topics", "add-partitions", "orders", "--partitions", "3"),
        "topic orders has 3 partitions, not 2",
    ),
    (
        ("topics", "delete", "ord*"),
        "delete topic orders with its 2 partitions, for good",
        ("topics", "delete", "orders", "--yes"),
        "topic orders is gone",
    ),
    (
        ("configs", "alter", "topic/orders", "--set", "retention.ms=2", "--delete", "segment.ms"),
        "topic/orders: delete segment.ms (was not set), set retention.ms=2 (was not set)",
        ("configs", "alter", "topic/orders", "--set", "retention.ms=3"),
        "configs of topic/orders: retention.ms is 3, and was not set",
    ),
    (
        ("configs", "replace", "broker/11", "--set", "log.cleaner.threads=2"),
        "broker/11: log.cleaner.threads=2 (was not set)",
        ("configs", "alter", "broker/11", "--set", "ssl.key.password=hush"),
        "configs of broker/11: ssl.key.password is (hidden), and was not set",
    ),
    (
        ("elect", "--type", "unclean", "--topic", "orders", "--partition", "0"),
        "elect a leader that may lack records for orders-0 (led by 11)",
        ("topics", "delete", "orders", "--yes"),
        "topic orders is gone",
    ),
    (
        ("brokers", "unregister", "14", "--force"),
        "unregister broker 14: it is active, and 0 partitions have a replica on it",
        ("topics", "create", "other", "--replica-assignment", "14"),
        "broker 14: replicas is 1, not 0",
    ),
    (
        ("labels", "set", "topic:orders", "acme/schema=8"),
        "set acme/schema to '8' on topic:orders (was not set)",
        ("labels", "set", "topic:orders", "acme/schema=7"),
        "label acme/schema of topic:orders: value is 7, and was not set",
    ),
    (
        ("quotas", "set", "user/ana", "--quota", "producer_byte_rate=9"),
        "quotas of user/ana: producer_byte_rate 9 (was not set)",
        ("quotas", "set", "user/ana", "--quota", "producer_byte_rate=8"),
        "quotas of user/ana: producer_byte_rate is 8.0, and was not set",
    ),
    (
        ("features", "downgrade", "eligible.leader.replicas.version=0"),
        "take eligible.leader.replicas.version from 1 to 0",
        ("features", "downgrade", "eligible.leader.replicas.version=0"),
        "feature eligible.leader.replicas.version: level is 0, not 1",
    ),
    (
        ("acls", "add", "topic/orders", "--operation", "read", "--principal", "User:ana"),
        "add ACL ALLOW User:ana from * to READ TOPIC LITERAL orders",
        ("acls", "add", "topic/orders", "--operation", "read", "--principal", "User:ana"),
        "ACL ALLOW User:ana from * to READ TOPIC LITERAL orders is there",
    ),
    (
        ("acls", "remove", "--principal", "User:bo"),
        "remove ACLs: ALLOW User:bo from * to READ TOPIC LITERAL orders",
        ("acls", "add", "topic/orders", "--operation", "write", "--principal", "User:bo"),
        "ACL ALLOW User:bo from * to WRITE TOPIC LITERAL orders is new",
    ),
    (
        ("users", "remove", "bo", "--mechanism", "SCRAM-SHA-256"),
        "remove the SCRAM-SHA-256 credential of bo",
        ("users", "remove", "bo", "--mechanism", "SCRAM-SHA-256", "--yes"),
        "SCRAM-SHA-256 credential of bo: iterations is not set, and was 4096",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "says", "other", "named"), CHANGES, ids=[" ".join(row[0][:2]) for row in CHANGES])
async def test_plan_is_refused_when_what_it_goes_by_has_changed_and_names_the_change(
    user: Terminal, tmp_path: Path, command: tuple[str, ...], says: str, other: tuple[str, ...], named: str
) -> None:
    file = tmp_path / "plan.json"
    shown = await planned(user, file, *command)
    assert f"  {says}\n" in shown.out
    assert "hush" not in file.read_text()
    assert (await user.run(*other)).code == exit_codes.DONE
    (change, *_) = await refused(user, file)
    assert change.startswith(f"quorate: {named}")


@pytest.mark.parametrize("command", [row[0] for row in CHANGES if "unclean" not in row[0]], ids=" ".join)
async def test_plan_is_made_as_it_says_while_other_things_change(
    user: Terminal, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "plan.json"
    shown = await planned(user, file, *command)
    await user.run("topics", "create", "another", "--partitions", "1")
    before = state(user)
    done = await user.run("apply", str(file), "--yes")
    assert (done.code, state(user) == before) == (exit_codes.DONE, False), done
    if "unregister" in command:
        del user.epochs[14]
    lines = [line.strip() for line in shown.out.splitlines() if line.startswith("  ")]
    assert done.out.splitlines() == [f"Done: {line}." for line in lines]
    again = await user.run("apply", str(file), "--yes")
    assert (again.code, "has changed since the plan was made" in again.err) == (exit_codes.REFUSED, True)


async def test_plan_writes_defaults_down_and_leaves_out_what_is_there(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    await planned(user, file, "topics", "create", "orders", "new", "--if-not-exists")
    (step,) = json.loads(file.read_text())["steps"]
    (wanted,) = step["change"]["create_topics"]["topics"]
    assert (wanted["name"], wanted["num_partitions"], wanted["replication_factor"]) == ("new", 1, 1)


async def test_plan_of_moves_waits_goes_on_after_an_interruption_and_names_brokers_that_are_gone(
    user: Terminal, tmp_path: Path
) -> None:
    moves, file = tmp_path / "moves.json", tmp_path / "plan.json"
    moves.write_text(json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [13]}]}))
    shown = await planned(user, file, "reassign", "apply", str(moves))
    assert "  move orders-0 from 11,12 to 13\n" in shown.out
    applied = await user.run("apply", str(file), "--yes", "--json")
    document = json.loads(applied.out)
    assert (document["schema_version"], set(document["as_of"])) == (1, {"offset", "time"})
    (step,) = document["steps"]
    assert (step["outcome"], step["operation"]) == ("done", "alter_partition_reassignments")
    assert (await topic(user, "orders"))["partitions"][0]["adding_replicas"] == [13]
    open_moves = state(user)
    again = await user.run("apply", str(file), "--json")
    (step,) = json.loads(again.out)["steps"]
    assert (again.code, step["outcome"], state(user)) == (exit_codes.DONE, "earlier", open_moves)

    other = tmp_path / "other.json"
    back = await planned(user, other, "reassign", "cancel", "--all")
    assert "  cancel the reassignment of orders-0\n" in back.out
    assert (await user.run("apply", str(other), "--yes")).code == exit_codes.DONE
    assert (await topic(user, "orders"))["partitions"][0]["replica_nodes"] == [11, 12]
    assert (await user.run("apply", str(file), "--yes")).code == exit_codes.DONE

    elsewhere = tmp_path / "elsewhere.json"
    moves.write_text(json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 1, "replicas": [14]}]}))
    await planned(user, elsewhere, "reassign", "apply", str(moves), "--additional")
    del user.epochs[14]
    assert (await user.run("brokers", "unregister", "14", "--force", "--yes")).code == exit_codes.DONE
    assert await refused(user, elsewhere) == ["quorate: broker 14: state is not registered, not active"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("brokers", "drain", "13"), "Broker 13 holds no replica."),
        (("topics", "set-replication-factor", "orders", "2"), "All partitions of orders have 2 replicas."),
        (("elect", "--type", "preferred", "--all"), "No partition needs an election."),
        (("topics", "create", "orders", "--if-not-exists"), "All of these topics exist already."),
        (("topics", "delete", "none-*", "--if-exists"), "No topic matches."),
    ],
)
async def test_what_is_so_already_is_done_and_needs_no_plan(
    user: Terminal, tmp_path: Path, command: tuple[str, ...], why: str
) -> None:
    file, before = tmp_path / "plan.json", state(user)
    ended = await user.run(*command, "--plan", str(file))
    said = f"quorate: {why} There is nothing to plan, and {file} was not written.\n"
    assert ended == (exit_codes.DONE, "", said)
    assert (file.exists(), state(user)) == (False, before)


async def test_step_whose_answer_is_lost_is_neither_done_nor_refused(user: Terminal, tmp_path: Path) -> None:
    file, quorum = tmp_path / "plan.json", user.stage.quorum
    await planned(user, file, "topics", "delete", "orders")

    async def is_written() -> bool:
        return quorum.log_end_offset > end

    end, quorum.is_held = quorum.committed, True
    async with asyncio.TaskGroup() as group:
        applying = group.create_task(user.run("apply", str(file), "--yes", "--json"))
        await eventually(is_written, "the change is in the log")
        quorum.elect(None)
    ended = applying.result()
    assert ended.code == exit_codes.OUTCOME_UNKNOWN, ended
    (step,) = json.loads(ended.out)["steps"]
    assert (step["outcome"], step["reply"]) == ("unknown", None)
    assert f"this was request {step['request_id']}: quorate history tells" in ended.err


async def test_files_that_are_no_plans_are_refused_with_the_rule(user: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    await planned(user, file, "topics", "delete", "orders")
    twice = await user.run("topics", "delete", "orders", "--plan", str(file))
    assert (twice.code, "is there already: a plan is written to a new file" in twice.said) == (exit_codes.USAGE, True)
    whole = json.loads(file.read_text())
    for wrong, says in (
        ({**whole, "version": 2}, "version: Input should be 1"),
        ({**whole, "steps": []}, "steps: List should have at least 1 item"),
        ({**whole, "steps": [{**whole["steps"][0], "change": {}}]}, "steps.0: a step is one request"),
        ({**whole, "made_by": "x" * 101}, "made_by: String should have at most 100 characters"),
        ({**whole, "note": ""}, "note: is not known"),
        ({**whole, "undoes": "a\r\nX-Other: b"}, "undoes: String should match pattern"),
        ({**whole, "undoes": ""}, "undoes: String should match pattern"),
    ):
        file.write_text(json.dumps(wrong))
        ended = await user.run("apply", str(file))
        assert (ended.code, "is no plan: " in ended.said, says in ended.said) == (exit_codes.USAGE, True, True), ended
    for path in (tmp_path, tmp_path / "none.json"):
        assert "cannot be read" in (await user.run("apply", str(path))).said
    made_up = [{"about": "ACL of somebody", "values": {"note": "no"}}, {"about": "topic orders", "values": {}}]
    file.write_text(json.dumps({**whole, "steps": [{**whole["steps"][0], "facts": made_up}]}))
    assert "quorate: ACL of somebody is gone" in await refused(user, file)
    file.write_text(json.dumps({**whole, "cluster_id": "another"}))
    other = await user.run("apply", str(file))
    assert (other.code, "the plan is of cluster another, and this is" in other.err) == (exit_codes.REFUSED, True)
    file.write_text(json.dumps(whole))
    unasked = await user.run("apply", str(file))
    assert (unasked.code, "to make 1 change, say --yes" in unasked.err) == (exit_codes.USAGE, True)
    assert await topic(user, "orders")


async def test_outcomes_of_many_changes_are_counted_behind_the_first(user: Terminal, tmp_path: Path) -> None:
    names = [f"many-{number:02}" for number in range(12)]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    for option in ((), ("--all",)):
        status, _, _ = await user.stage.ask(1, "POST", "/v1/topics", {"topics": topics})
        assert status == 200
        file = tmp_path / f"plan{len(option)}.json"
        await planned(user, file, "topics", "delete", "many-*")
        applied = await user.run("apply", str(file), "--yes", *option)
        done = [f"Done: delete topic {name} with its 1 partition, for good." for name in names]
        shown = done if option else [*done[:10], "... and 2 more (--all shows all)"]
        assert (applied.code, applied.out.splitlines()) == (exit_codes.DONE, shown)


async def catch_up(user: Terminal, number: int) -> None:
    """The leader of a partition of orders says that all its replicas are in sync."""
    reply = await topic(user, "orders")
    found = reply["partitions"][number]
    data = {
        "partition_index": number,
        "leader_epoch": found["leader_epoch"],
        "partition_epoch": found["partition_epoch"],
        "new_isr_with_epochs": [{"broker_id": broker} for broker in found["replica_nodes"]],
    }
    leader = found["leader_id"]
    request = {
        "broker_id": leader,
        "broker_epoch": user.epochs[leader],
        "topics": [{"topic_id": reply["topic_id"], "partitions": [data]}],
    }
    status, _, _ = await user.stage.ask(1, "POST", "/v1/broker-rpc/alter-partition", request)
    assert status == 200


async def moving(user: Terminal) -> list[str]:
    """The partitions that are on their way."""
    _, reply, _ = await user.stage.ask(1, "GET", "/v1/partition-reassignments")
    return [f"{one['name']}-{each['partition_index']}" for one in reply["topics"] for each in one["partitions"]]


async def interrupted(user: Terminal, file: Path, *arguments: str, when: Callable[[], Awaitable[bool]]) -> Ended:
    """What `apply` says when somebody says Ctrl-C at that time."""
    process = await start(user.stage.urls[1], "apply", str(file), "--yes", *arguments)
    await eventually(when, "the move is open")
    process.send_signal(signal.SIGINT)
    return await end_of(process)


async def test_waves_of_a_drain_follow_each_other_and_ctrl_c_leaves_them_or_takes_them_back(
    user: Terminal, tmp_path: Path
) -> None:
    """Each wave is one move: the second begins when the first is over, and nobody asks twice for what goes on."""
    file = tmp_path / "plan.json"
    await planned(user, file, "brokers", "drain", "12", "--at-once", "1")
    steps = json.loads(file.read_text())["steps"]
    assert [step["waits"] for step in steps] == [True, True]
    first, second = (step["change"]["alter_partition_reassignments"]["topics"] for step in steps)
    one, other = (f"orders-{wave[0]['partitions'][0]['partition_index']}" for wave in (first, second))

    async def is_first_open() -> bool:
        await user.beat()
        return await moving(user) == [one]

    async def is_second_open() -> bool:
        await user.beat()
        return await moving(user) == [other]

    taken = await interrupted(user, file, "--if-interrupted", "cancel", when=is_first_open)
    assert (taken.code, await moving(user)) == (exit_codes.INTERRUPTED, []), taken
    assert "moves that were not over, and were taken back: 1\n" in taken.err
    left = await interrupted(user, file, when=is_first_open)
    assert (left.code, await moving(user)) == (exit_codes.INTERRUPTED, [one]), left
    assert "the moves go on; the same `quorate apply` goes on with the plan, too" in left.err
    async with asyncio.TaskGroup() as group:
        going_on = group.create_task(user.run("apply", str(file), "--yes", "--json"))
        await catch_up(user, int(one.rpartition("-")[2]))
        await eventually(is_second_open, "the second wave has begun")
    steps = json.loads(going_on.result().out)["steps"]
    assert [step["outcome"] for step in steps] == ["earlier", "done"]
    partitions = (await topic(user, "orders"))["partitions"]
    assert 12 not in partitions[int(one.rpartition("-")[2])]["replica_nodes"]


async def test_moves_that_nobody_waited_for_are_taken_back_by_ctrl_c_too(user: Terminal, tmp_path: Path) -> None:
    """The first step is not waited for, the second is, and the third is never reached."""
    file, other = tmp_path / "plan.json", tmp_path / "other.json"
    await planned(user, file, "brokers", "drain", "12", "--at-once", "1")
    await planned(user, other, "configs", "alter", "topic/orders", "--set", "retention.ms=5")
    plan = json.loads(file.read_text())
    plan["steps"][0]["waits"] = False
    plan["steps"] += json.loads(other.read_text())["steps"]
    file.write_text(json.dumps(plan))

    async def are_both_open() -> bool:
        await user.beat()
        return len(await moving(user)) == 2

    taken = await interrupted(user, file, "--if-interrupted", "cancel", when=are_both_open)
    assert (taken.code, await moving(user)) == (exit_codes.INTERRUPTED, []), taken
    assert "moves that were not over, and were taken back: 2\n" in taken.err
