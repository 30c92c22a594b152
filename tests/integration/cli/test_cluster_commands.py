"""`quorate brokers`, `cluster` and `quorum` against controllers behind real HTTP servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from quorate.controller.brokers.controller_registration import own_registration
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.brokers import Listener
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Terminal, command, terminal
from tests.integration.http_stage import CLUSTER_ID


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    async with terminal({11: "a", 12: None}) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,11:12")
        yield typed


def facts(out: str) -> dict[str, str]:
    """Two columns as names and values."""
    pairs = (line.strip().split("  ", 1) for line in out.splitlines())
    return {pair[0]: pair[1].strip() for pair in pairs}


async def test_brokers_are_listed_and_described(user: Terminal) -> None:
    listed = await user.run("brokers", "list")
    assert [line[:3] for line in listed.cells] == [
        ["BROKER", "STATE", "RACK"], ["11", "active", "a"], ["12", "active", "-"],
    ]  # fmt: skip
    assert [one["id"] for one in json.loads((await user.run("brokers", "list", "--json")).out)["brokers"]] == [11, 12]
    described = facts((await user.run("brokers", "describe", "11")).out)
    assert (described["state"], described["replicas"], described["leader of"]) == ("active", "2", "2")
    as_json = json.loads((await user.run("brokers", "describe", "12", "--json")).out)
    assert (as_json["broker"]["rack"], as_json["replicas"], as_json["leaders"]) == (None, 2, 0)


async def test_broker_is_unregistered_when_the_user_is_sure(user: Terminal) -> None:
    runs = await user.run("brokers", "unregister", "11", "--yes")
    assert (runs.code, runs.out) == (exit_codes.REFUSED, "")
    assert "broker 11 is active, holds 2 replicas and leads 2 partitions, and would register again" in runs.err
    asked = await user.run("brokers", "unregister", "12", "--force")
    assert (asked.code, "to unregister broker 12, say --yes" in asked.said) == (exit_codes.USAGE, True)
    fence = {"broker_id": 12, "broker_epoch": user.epochs[12], "current_metadata_offset": 2**60, "want_fence": True}
    assert (await user.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", fence))[1]["is_fenced"]
    held = await user.run_as_it_is("brokers", "unregister", "12", "--yes")
    assert (held.code, held.out) == (exit_codes.REFUSED, "")
    assert held.err.startswith("quorate: broker 12 holds 2 replicas and leads 0 partitions; quorate brokers drain 12")
    done = await command(user.stage.urls[1], "brokers", "unregister", "12", "--yes", "--force")
    said = "quorate: 2 replicas still on it: quorate brokers drain 12 moves them\n"
    assert done == (exit_codes.DONE, "Broker 12 is no longer registered.\n", said)
    member = user.stage.members[1].controller
    assert list(member.stable.cluster.brokers) == [11]
    gone = await command(user.stage.urls[1], "brokers", "unregister", "12", "--yes")
    assert (gone.code, gone.err) == (
        exit_codes.REFUSED,
        "quorate: broker 12: Broker ID 12 is not currently registered (BROKER_ID_NOT_REGISTERED)\n",
    )


async def test_cluster_is_described(user: Terminal) -> None:
    described = facts((await user.run("cluster", "describe")).out)
    assert (described["cluster id"], described["metadata.version"], described["topics"]) == (CLUSTER_ID, "30", "1")
    assert described["active controller"].startswith("1 (epoch ")
    as_json = json.loads((await user.run("cluster", "describe", "--json")).out)
    assert (as_json["brokers"], as_json["partitions"]["total"]) == ([11, 12], 2)


async def test_quorum_is_described(user: Terminal) -> None:
    described = facts((await user.run("quorum", "describe")).out)
    assert (described["active controller"], described["voters"], described["max follower lag"]) == (
        "1", "1,2,3", "0 records",
    )  # fmt: skip
    table = (await user.run("quorum", "describe", "--replication")).cells
    assert [(line[0], line[2]) for line in table] == [
        ("NODE", "STATUS"), ("1", "active"), ("2", "standby"), ("3", "standby"),
    ]  # fmt: skip
    voters = json.loads((await user.run("quorum", "describe", "--json")).out)["voters"]
    assert [voter["last_caught_up_ms"] for voter in voters] == [0, 6, 6]


async def test_quorum_tells_of_a_node_without_a_vote_and_for_whom_it_waits(user: Terminal) -> None:
    user.stage.members[1].soft.without_vote = {2: (), 3: (2,)}

    described = await user.run("quorum", "describe")
    assert described.code == exit_codes.DONE, described
    lines = [line for line in described.out.splitlines() if line.startswith("no vote")]

    assert [line.split(maxsplit=2)[2] for line in lines] == [
        "controller 2: its memory was lost; it is catching up",
        "controller 3: its memory was lost; waits until controller 2 has answered the active one",
    ]


async def test_registrations_of_controllers_are_shown(user: Terminal) -> None:
    own = own_registration(2, b"2" * 16, [Listener(name="HTTP", host="h", port=80)])
    async with ControllerClient(user.stage.urls) as client:
        await client.register_controller(own)
    shown = await user.run("quorum", "controllers")
    assert [line[:2] for line in shown.cells] == [["NODE", "VOTER"], ["1", "yes"], ["2", "yes"], ["3", "yes"]]
    assert shown.cells[2][2:] == [uuid_text(b"2" * 16), "7-30", "HTTP://h:80"]
    assert shown.cells[1][2:] == ["not", "registered", "-", "-"]
    listed = json.loads((await user.run("quorum", "controllers", "--json")).out)["controllers"]
    assert [one["is_registered"] for one in listed] == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("brokers", "describe", "99"), exit_codes.REFUSED, "no broker 99 is registered"),
        (("brokers", "describe", "x"), exit_codes.USAGE, "ID"),
        (("brokers", "unregister", "-1", "--yes"), exit_codes.USAGE, "-1"),
        (("brokers", "unregister", "99", "--yes"), exit_codes.REFUSED, "99 is not currently registered"),
        (("cluster", "delete"), exit_codes.USAGE, "delete"),
        (("quorum", "describe", "--lag"), exit_codes.USAGE, "--lag"),
    ],
)
async def test_bad_command_ends_with_a_sentence(
    user: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = await user.run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.said
    assert "Traceback" not in ended.err
