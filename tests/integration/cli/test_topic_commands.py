"""`quorate topics` and `quorate partitions` against controllers behind real HTTP servers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Terminal, terminal


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    """Topic orders has partitions on 11, 12; topic payments one on 13 that is configured."""
    async with terminal({11: "a", 12: "b", 13: "b"}) as typed:
        create = await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        assert create == (exit_codes.DONE, "Topic orders was created: partitions 2, replication factor 2.\n", "")
        create = await typed.run(
            "topics", "create", "payments", "--config", "retention.ms=7", "--replica-assignment", "13"
        )
        assert create.code == exit_codes.DONE, create
        yield typed


async def test_topics_are_listed_by_name_and_state(user: Terminal) -> None:
    listed = await user.run("topics", "list")
    assert listed.cells[0] == ["TOPIC", "PARTITIONS", "REPLICAS", "CONFIGS"]
    assert listed.cells[1:] == [["orders", "2", "2", "-"], ["payments", "1", "1", "retention.ms=7"]]
    wide = await user.run("topics", "list", "orders", "--wide")
    assert wide.cells == [["TOPIC", "PARTITIONS", "MATCHING", "REPLICAS", "CONFIGS"], ["orders", "2", "2", "2", "-"]]
    assert (await user.run("topics", "list", "pay*")).cells[1:] == listed.cells[2:]
    assert (await user.run("topics", "list", "--leader", "12")).cells[1][:3] == ["orders", "2", "1"]
    assert (await user.run("topics", "list", "--with-overrides")).cells[1:] == listed.cells[2:]
    assert (await user.run("topics", "list", "--at-min-isr", "--offline")).cells[1][0] == "payments"
    assert len((await user.run("topics", "list", "--under-replicated")).cells) == 1
    cut = await user.run("topics", "list", "--limit", "1")
    assert (len(cut.cells), cut.err) == (2, "quorate: 1 of 2 are shown; --limit gives more\n")
    found = json.loads((await user.run("topics", "list", "--limit", "1", "--json")).out)
    assert (found["matching"], found["next_after"], found["topics"][0]["replication_factor"]) == (2, "orders", 2)


async def test_topics_and_partitions_are_described(user: Terminal) -> None:
    described = await user.run("topics", "describe", "orders")
    assert described.cells[0][0] == "orders"
    assert described.cells[1][:5] == ["PARTITION", "STATE", "LEADER", "EPOCH", "REPLICAS"]
    assert [line[:6] for line in described.cells[2:]] == [
        ["0", "Online", "11", "0", "11,12", "11,12"],
        ["1", "Online", "12", "0", "12,11", "12,11"],
    ]
    assert "retention.ms=7" in (await user.run("topics", "describe")).out
    as_json = json.loads((await user.run("topics", "describe", "pay*", "--json")).out)
    (topic,) = as_json["topics"]
    assert (topic["name"], topic["partition_count"], topic["partitions"][0]["state"]) == (
        "payments", 1, "OnlinePartition",
    )  # fmt: skip
    listed = await user.run("partitions", "list", "--broker", "12")
    assert [line[:2] for line in listed.cells[1:]] == [["orders", "0"], ["orders", "1"]]
    one = await user.run("partitions", "describe", "orders-1", "payments-0")
    assert one.cells[0][:3] == ["orders-1", "OnlinePartition", "leader"]
    assert one.cells[3][:3] == ["12", "Online", "leader,isr"]
    as_json = json.loads((await user.run("partitions", "describe", "orders-1", "--json")).out)
    assert as_json["partitions"][0]["partition"]["replica_nodes"] == [12, 11]


@pytest.mark.parametrize("kind", ["topics", "partitions"])
async def test_names_in_a_list_that_no_topic_has_are_told(user: Terminal, kind: str) -> None:
    """An empty list of what is offline is no good news of a topic that was misspelt."""
    told = "quorate: there is no topic ordrs: did you mean orders?\n"
    assert (await user.run(kind, "list", "ordrs", "--offline")).err == told
    beside = await user.run(kind, "list", "ordrs", "payments", "zzz*")
    assert (beside.code, {line[0] for line in beside.cells[1:]}, beside.err) == (exit_codes.DONE, {"payments"}, told)
    assert (await user.run(kind, "list", "orders", "zzz*", "--offline")).err == ""
    assert (await user.run(kind, "list", "payments,ordrs", "--limit", "1")).err == told


async def test_pages_are_followed(user: Terminal) -> None:
    await user.run("topics", "create", "wide", "--partitions", "2500")
    listed = await user.run("partitions", "list", "wide", "orders")
    assert [line[:2] for line in listed.cells[1:]] == [
        ["orders", "0"], ["orders", "1"], *(["wide", str(number)] for number in range(2500)),
    ]  # fmt: skip
    described = json.loads((await user.run("topics", "describe", "wide", "--json")).out)
    assert [one["partition_index"] for one in described["topics"][0]["partitions"]] == list(range(2500))
    page = json.loads((await user.run("partitions", "list", "--json", "--limit", "1200")).out)
    assert (page["matching"], page["next_after"]) == (2503, "wide-1196")


async def test_pages_behind_the_first_hold_what_was_acknowledged_too(
    user: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller that is asked does not hear of what is committed."""
    monkeypatch.setattr(user.stage.members[2].controller, "on_commit", lambda batches: None)
    await user.run("topics", "create", *(f"many-{number:04d}" for number in range(1100)))
    listed = await user.run("topics", "list", "many-*")
    assert [line[0] for line in listed.cells[1:]] == [f"many-{number:04d}" for number in range(1100)]
    await user.run("topics", "create", "wide", "--partitions", "1200")
    shown = await user.run("partitions", "list", "wide")
    assert [line[1] for line in shown.cells[1:]] == [str(number) for number in range(1200)]


async def test_topics_grow_and_are_deleted(user: Terminal) -> None:
    grown = await user.run("topics", "add-partitions", "orders", "--partitions", "3", "--dry-run")
    assert grown.out == "Topic orders can have 3 partitions.\n"
    grown = await user.run("topics", "add-partitions", "orders", "--partitions", "3", "--replica-assignment", "13:11")
    assert grown.out == "Topic orders has 3 partitions.\n"
    assert (await user.run("topics", "describe", "orders")).cells[-1][4] == "13,11"
    asked = await user.run("topics", "delete", "o*")
    assert asked.code == exit_codes.USAGE
    assert asked.err == "quorate: nobody can be asked here: to delete topic orders for good, say --yes\n"
    assert await user.run("topics", "delete", "o*", "--yes") == (exit_codes.DONE, "Topic orders was deleted.\n", "")
    gone = await user.run("topics", "delete", "orders", "--yes")
    assert gone == (exit_codes.REFUSED, "", "quorate: there is no topic orders\n")
    assert (await user.run("topics", "delete", "orders", "--yes", "--if-exists")).code == exit_codes.DONE


async def test_create_that_fails_for_some_says_which(user: Terminal) -> None:
    made = await user.run("topics", "create", "orders", "new", "--partitions", "1")
    assert made.code == exit_codes.REFUSED
    assert made.out == "Topic new was created: partitions 1, replication factor 1.\n"
    assert made.err.splitlines() == [
        "quorate: orders: Topic 'orders' already exists. (TOPIC_ALREADY_EXISTS)", "quorate: 1 of 2 failed",
    ]  # fmt: skip
    made = await user.run("topics", "create", "orders", "other", "--if-not-exists", "--json")
    assert (made.code, [one["error_code"] for one in json.loads(made.out)["topics"]]) == (exit_codes.DONE, [36, 0])
    made = await user.run("topics", "create", "orders", "--if-not-exists")
    assert made == (exit_codes.DONE, "Topic orders exists already.\n", "")
    made = await user.run("topics", "create", "tried", "--dry-run")
    assert made.out == "Topic tried can be created: partitions 1, replication factor 1.\n"
    assert "tried" not in (await user.run("topics", "list")).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "create", "huge", "--replication-factor", "9"), r"huge: Unable .* \(INVALID_REPLICATION_FACTOR\)"),
        (("topics", "create", "orders"), r"orders: Topic 'orders' already exists. \(TOPIC_ALREADY_EXISTS\)"),
        (("topics", "add-partitions", "orders", "--partitions", "1"), r"orders: .* \(INVALID_PARTITIONS\)"),
        (("configs", "alter", "topic/orders", "--set", "segment.ms=0"), r"topic/orders: .* \(INVALID_CONFIG\)"),
        (("elect", "--type", "preferred", "--topic", "orders", "--partition", "7"), r"orders-7: .* \(UNKNOWN_.*\)"),
        (("users", "remove", "ana", "--mechanism", "SCRAM-SHA-256", "--yes"), r"ana: .* \(RESOURCE_NOT_FOUND\)"),
        (("quotas", "set", "user/ana", "--quota", "nope=1"), r"user/ana: .* \(INVALID_REQUEST\)"),
        (("acls", "add", "topic/a", "--principal", "bo", "--operation", "read"), r"bo, read, .*: .* \(.*\)"),
        (("features", "upgrade", "nope=1"), r".*this feature.* \(INVALID_UPDATE_VERSION\)"),
    ],
)
async def test_refusal_of_a_single_thing_names_it_and_the_code(
    user: Terminal, arguments: tuple[str, ...], said: str
) -> None:
    """As refusals of several do, one line each."""
    ended = await user.run(*arguments)
    assert (ended.code, ended.out) == (exit_codes.REFUSED, "")
    assert re.fullmatch(f"quorate: {said}\n", ended.err), ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("topics", "list", "a*b*c*d*e*"), exit_codes.USAGE, "more than 4 stars"),
        (("topics", "list", ""), exit_codes.USAGE, "1 to 249 characters"),
        (("topics", "list", "--limit", "0"), exit_codes.USAGE, "--limit"),
        (("topics", "list", "--broker", "-1"), exit_codes.USAGE, "--broker"),
        (("topics", "describe", "none"), exit_codes.REFUSED, "there is no topic none"),
        (("topics", "create", "a b"), exit_codes.REFUSED, "one or more characters other than ASCII"),
        (("topics", "create", "a" * 40_000), exit_codes.USAGE, "32767 is the most"),
        (("topics", "create", "t", "--partitions", "0"), exit_codes.USAGE, "--partitions"),
        (("topics", "create", "t", "--replication-factor", "9"), exit_codes.REFUSED, "target replication factor of 9"),
        (("topics", "create", "t", "--config", "x"), exit_codes.USAGE, "NAME=VALUE"),
        (("topics", "create", "t", "--config", "retention.mss=1"), exit_codes.REFUSED, "did you mean retention.ms?"),
        (("topics", "create", "t", "--config", "nope=1"), exit_codes.REFUSED, "Unknown topic config name: nope"),
        (("topics", "create", "t", "--replica-assignment", "1:x"), exit_codes.USAGE, "is no list of replicas"),
        (("topics", "create", "t", "--replica-assignment", "77"), exit_codes.REFUSED, "no such broker is registered"),
        (("topics", "create", "t", "--replica-assignment", "11", "--partitions", "2"), exit_codes.USAGE, "says how"),
        (("topics", "add-partitions", "none", "--partitions", "2"), exit_codes.REFUSED, "does not host"),
        (("topics", "add-partitions", "orders"), exit_codes.USAGE, "--partitions"),
        (("topics", "add-partitions", "orders", "--partitions", "1"), exit_codes.REFUSED, "has 2 partition(s)"),
        (("partitions", "describe", "orders"), exit_codes.USAGE, "is no partition"),
        (("partitions", "describe", "orders-99"), exit_codes.REFUSED, "there is no partition orders-99"),
        (("partitions", "describe", "*-0"), exit_codes.REFUSED, "there is no partition *-0"),
    ],
)  # fmt: skip
async def test_bad_command_ends_with_a_sentence(
    user: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = await user.run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.said
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("topics", "describe", "ordrs"),
        ("topics", "delete", "ordrs", "--yes"),
        ("topics", "add-partitions", "ordrs", "--partitions", "9"),
        ("partitions", "describe", "ordrs-0"),
        ("explain", "topic", "ordrs"),
        ("explain", "partition", "ordrs-0"),
        ("configs", "describe", "topic/ordrs"),
        ("configs", "alter", "topic/ordrs", "--set", "retention.ms=1"),
        ("configs", "replace", "topic/ordrs", "--set", "retention.ms=1"),
        ("elect", "--type", "preferred", "--topic", "ordrs", "--partition", "0"),
    ],
)
async def test_topic_that_is_not_there_is_taken_for_one_that_is_like_it(
    user: Terminal, command: tuple[str, ...]
) -> None:
    ended = await user.run(*command)
    assert ended.code == exit_codes.REFUSED
    assert "did you mean orders?" in ended.err, ended
    other = await user.run(*(part.replace("ordrs", "zebra") for part in command))
    assert (other.code, "did you mean" in other.err) == (exit_codes.REFUSED, False), other
