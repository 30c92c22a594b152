"""`quorate explain`: on files of a captured cluster, and against controllers behind real HTTP servers."""

from __future__ import annotations

import asyncio
import json
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.api.headers import TIMEOUT_MS
from quorate.controller.reads.answer_turns import ANSWERS_MAX
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone, terminal
from tests.integration.http_stage import Bad, stage

M2 = str(Path(__file__).parents[2] / "data" / "kafka" / "static" / "m2" / "log")
EXPLAIN = "/v1/answers/explain"
BAD = [
    Bad("number without topic", "GET", f"{EXPLAIN}?partition=3", None, 400, "INVALID_REQUEST", "name the `topic`"),
    Bad("empty topic", "GET", f"{EXPLAIN}?topic=", None, 400, "INVALID_REQUEST", "at least 1 character"),
    Bad("two subjects", "GET", f"{EXPLAIN}?broker=3&topic=t", None, 400, "INVALID_REQUEST", "exclude each other"),
    Bad("two others", "GET", f"{EXPLAIN}?broker=3&controller=1", None, 400, "INVALID_REQUEST", "exclude each other"),
    Bad("no controller", "GET", f"{EXPLAIN}?controller=7", None, 400, "INVALID_REQUEST", "no controller 7 is a voter"),
    Bad("old controller", "GET", f"{EXPLAIN}?controller=1&at=3", None, 400, "INVALID_REQUEST", "no log or checkpoint"),
    Bad("no such topic", "GET", f"{EXPLAIN}?topic=t", None, 404, "UNKNOWN_TOPIC_OR_PARTITION", "there is no topic 't'"),
    Bad("no such broker", "GET", f"{EXPLAIN}?broker=3", None, 404, "BROKER_ID_NOT_REGISTERED", "none has replicas"),
]


async def asked(*subject: str) -> dict[str, Any]:
    said = await alone("explain", *subject, "--from", M2, "--json")
    assert said.code == exit_codes.REFUSED, said
    reply: dict[str, Any] = json.loads(said.out)
    return reply


def causes(symptom: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(cause["code"], cause["broker"], cause["partitions"]) for cause in symptom["causes"]]


async def test_captured_cluster_is_explained_by_the_brokers_that_were_killed_in_it() -> None:
    reply = await asked()

    offline = reply["symptoms"][0]
    assert (offline["code"], offline["partitions"], offline["topics"]) == ("PARTITIONS_OFFLINE", 782, 65)
    assert causes(offline) == [("BROKER_DOWN", 13, 781), ("BROKER_DOWN", 14, 2)]
    assert reply["partitions"] == 3061
    assert offline["share"] == pytest.approx(782 / 3061)
    assert [one["code"] for one in reply["symptoms"][1:]] == [
        "PARTITIONS_UNDER_MIN_ISR", "PARTITIONS_UNDER_REPLICATED", "REASSIGNMENTS_OPEN",
    ]  # fmt: skip
    told = [(one["code"], one["broker"], one["led_again"], one["risk"]) for one in reply["remedies"]]
    assert told == [("START_BROKER", 13, 780, "LAST_KNOWN_LEADER"), ("START_BROKER", 14, 2, "LAST_KNOWN_LEADER")]


async def test_one_topic_and_one_partition_are_explained_by_themselves() -> None:
    topic = await asked("topic", "single.replica")
    assert (topic["partitions"], topic["symptoms"][0]["partitions"]) == (3, 2)
    assert [(one["broker"], one["led_again"]) for one in topic["remedies"]] == [(13, 1), (14, 1)]

    shown = await alone("explain", "partition", "single.replica-1", "--from", M2)
    assert shown.code == exit_codes.REFUSED
    assert shown.out.startswith("1 partition is without a leader")
    assert "    because broker 14 is down since 2026-11-21T00:14:53.807+00:00: 1 partition\n" in shown.out
    assert "\n    single.replica-1\n" in shown.out
    assert "   1. start broker 14: 1 partition is led again (1 by their last known leader" in shown.out
    assert "\n      quorate node start broker-14  (a cluster of quorate up; elsewhere: its service" in shown.out
    healthy = await alone("explain", "partition", "single.replica-0", "--from", M2)
    assert (healthy.code, healthy.out) == (exit_codes.DONE, "Nothing is wrong with 1 partition.\n")


@pytest.mark.parametrize(
    "subject",
    [
        ["planet", "mars"], ["broker"], ["broker", "13-14"], ["partition", "orders"], ["topic", "a", "b"],
        ["controller", "x"], ["reassignment", "orders"], ["topic", ""],
    ],
)  # fmt: skip
async def test_what_cannot_be_explained_is_a_mistake_in_use(subject: list[str]) -> None:
    assert (await alone("explain", *subject, "--from", M2)).code == exit_codes.USAGE


async def test_topic_that_is_there_is_not_taken_for_a_slip_where_a_partition_is_missing() -> None:
    missing = await alone("explain", "partition", "single.replica-99", "--from", M2)
    assert missing.err.startswith("quorate: topic single.replica has no partition 99 (")


@pytest.mark.parametrize("kind", ["controller", "broker"])
async def test_what_is_no_id_is_said_of_the_kind_that_was_named(kind: str) -> None:
    refused = await alone("explain", kind, "abc")
    assert (refused.code, f"'abc' is no {kind} id" in refused.err) == (exit_codes.USAGE, True), refused


async def test_running_controllers_explain_what_nobody_but_an_operator_can_mend() -> None:
    """The only replica's broker is unregistered: it is unknown, and no election finds anybody."""
    async with terminal({11: "a", 12: "b"}) as user:
        await user.run("topics", "create", "lost", "--replica-assignment", "12")
        assert (await user.run("explain")).code == exit_codes.DONE
        await user.run("brokers", "unregister", "12", "--force", "--yes")
        user.epochs = {11: user.epochs[11]}

        reply = json.loads((await user.run("explain", "broker", "12", "--json")).out)
        assert causes(reply["symptoms"][0]) == [("BROKER_UNKNOWN", 12, 1)]
        assert [(one["code"], one["broker"]) for one in reply["remedies"]] == [("REASSIGN", 12)]
        steps = [json.loads(line) for line in (await user.run("history", "broker", "12", "--json")).out.splitlines()]
        assert reply["symptoms"][0]["causes"][0]["since_ms"] == steps[-1]["time_ms"]
        before = await user.run("explain", "--at", str(steps[-1]["base_offset"]), "--json")
        (cause,) = json.loads(before.out)["symptoms"][0]["causes"]
        assert (cause["code"], cause["since_ms"]) == ("NOT_CAUGHT_UP", None), "it was registered still"


async def test_topic_without_anybody_in_sync_may_be_led_uncleanly_as_a_last_resort() -> None:
    async with terminal({11: "a", 12: "b"}) as user:
        await user.run("topics", "create", "torn", "--replica-assignment", "12:11")
        topic = (await user.stage.ask(1, "GET", "/v1/topics/torn"))[1]["topic"]
        (partition,) = topic["partitions"]
        shrunk = {
            "broker_id": 12,
            "broker_epoch": user.epochs[12],
            "topics": [{"topic_id": topic["topic_id"], "partitions": [{
                "partition_index": 0,
                "leader_epoch": partition["leader_epoch"],
                "partition_epoch": partition["partition_epoch"],
                "new_isr_with_epochs": [{"broker_id": 12}],
            }]}],
        }  # fmt: skip
        status, _, _ = await user.stage.ask(1, "POST", "/v1/broker-rpc/alter-partition", shrunk)
        assert status == 200
        await user.run("brokers", "unregister", "12", "--force", "--yes")
        user.epochs = {11: user.epochs[11]}

        remedies = json.loads((await user.run("explain", "--json")).out)["remedies"]
        last = remedies[-1]
        assert (last["code"], last["led_again"], last["risk"]) == ("ELECT_UNCLEANLY", 1, "UNCLEAN")
        assert last["command"] == "quorate elect --type unclean --topic torn --partition 0"


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_wrong_subject_is_refused_with_the_rule(bad: Bad) -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, bad.method, bad.path)

    assert (status, reply["error"]) == (bad.status, bad.error)
    assert bad.says in reply["message"]


async def test_controller_is_explained_with_what_its_loss_would_mean() -> None:
    async with terminal({11: "a"}) as user:
        user.stage.members[1].soft.lost.add(3)

        gone = await user.run("explain", "controller", "3")
        assert gone.code == exit_codes.REFUSED
        assert gone.out.startswith(
            "controller 3 is unreachable, last contact 5 ms ago\n    without it 2 voters of 3 would be"
        )
        assert (
            "\ncontroller 3 is unreachable: 0 more can fail before writes stop  [CONTROLLERS_UNREACHABLE]\n" in gone.out
        )
        start = "   1. start controller 3: it goes on where it was  [START_CONTROLLER, risk NONE]\n"
        assert f"{start}      quorate node start controller-3  (a cluster of quorate up;" in gone.out
        assert gone.out.endswith("      quorate recover rejoin --node-id 3\n")

        needed = await user.run("explain", "controller", "2", "--json")
        found = json.loads(needed.out)
        assert (needed.code, found["symptoms"]) == (exit_codes.DONE, [])
        assert [one["code"] for one in found["controller"]["if_lost"]] == ["QUORUM_LOST"]
        assert found["controller"]["quorum"]["may_fail_then"] == -1
        active = await user.run("explain", "controller", "1")
        assert "without it: nothing could be changed any more" in active.out
        assert "another one would be elected" not in active.out, "nobody could be"


async def test_cluster_with_a_lost_controller_is_not_called_well() -> None:
    """As `status` says it; of one topic nothing is wrong."""
    async with terminal({11: "a"}) as user:
        await user.run("topics", "create", "orders", "--replica-assignment", "11")
        user.stage.members[1].soft.lost.add(3)
        whole = await user.run("explain")
        assert (whole.code, "Nothing is wrong" in whole.out) == (exit_codes.REFUSED, False)
        assert whole.out.startswith(
            "controller 3 is unreachable: 0 more can fail before writes stop  [CONTROLLERS_UNREACHABLE]\n"
            "What to do, in this order:\n   1. start controller 3: it goes on where it was"
        )
        assert (await user.run("explain", "topic", "orders")).code == exit_codes.DONE


async def test_of_a_controller_that_nobody_has_heard_of_the_log_is_unknown_and_no_number() -> None:
    async with terminal({11: "a"}) as user:
        soft = user.stage.members[1].soft
        soft.lost.add(3)
        soft.unheard.add(3)

        gone = await user.run("explain", "controller", "3")
        assert gone.out.startswith(
            "controller 3 is unreachable, last contact 5 ms ago, how far its log goes is unknown\n"
        )
        described = await user.run("quorum", "describe", "--replication", "--json")
        third = json.loads(described.out)["voters"][2]
        assert (third["log_end_offset"], third["lag_records"]) == (None, None)


async def test_stalled_reassignment_names_whom_it_waits_for_and_its_command_cancels_it(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    moved = {"topic": "orders", "partition": 0, "replicas": [11, 13]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}), encoding="utf-8")
    async with terminal({11: "a", 12: "b", 13: "c"}) as user:
        await user.run("topics", "create", "orders", "--replica-assignment", "11:12")
        assert (await user.run("reassign", "apply", str(plan))).code == exit_codes.DONE
        copying = await user.run("explain", "reassignment", "orders-0")
        assert copying.out.startswith("the reassignment goes from 11, 12 to 11, 13 since 20")
        assert "[COPYING]\n" in copying.out
        await user.run("brokers", "unregister", "13", "--force", "--yes")
        user.epochs = {11: user.epochs[11], 12: user.epochs[12]}

        found = json.loads((await user.run("explain", "reassignment", "orders-0", "--json")).out)
        (awaited,) = [one for one in found["reassignment"]["replicas"] if one["is_awaited"]]
        assert (found["reassignment"]["progress"], awaited["broker"]) == ("STALLED", 13)
        steps = [json.loads(line) for line in (await user.run("history", "broker", "13", "--json")).out.splitlines()]
        assert (awaited["cause"], awaited["since_ms"]) == ("BROKER_UNKNOWN", steps[-1]["time_ms"])
        cancel = found["remedies"][-1]
        assert cancel["code"] == "CANCEL_REASSIGNMENT"
        plan.write_text(shlex.split(cancel["command"])[2], encoding="utf-8")
        assert (await user.run("reassign", "cancel", str(plan), "--yes")).code == exit_codes.DONE
        done = await user.run("explain", "reassignment", "orders-0")
        assert (done.code, done.out.splitlines()[0]) == (exit_codes.DONE, "orders-0 is not being reassigned.")


async def test_explanation_takes_its_turn_and_status_goes_without_one_when_too_many_wait() -> None:
    """Sixteen answers are under way: one more is refused, of the controller that is asked and of no other kind."""
    async with terminal({11: "a"}) as user:
        await user.run("topics", "create", "lost", "--replica-assignment", "11")
        await user.run("brokers", "unregister", "11", "--force", "--yes")
        may_end = threading.Event()
        turns = user.stage.members[1].node.turns
        line = [asyncio.create_task(turns.answer(None, 60_000, lambda _: may_end.wait(60))) for _ in range(ANSWERS_MAX)]
        await asyncio.sleep(0)
        try:
            refused, reply, _ = await user.stage.ask(1, "GET", EXPLAIN)
            assert (refused, reply["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
            assert (await user.stage.ask(1, "GET", f"{EXPLAIN}?controller=2"))[0] == 200
            answered, status, _ = await user.stage.ask(1, "GET", "/v1/status?explain=true")
            assert (answered, status["partitions"]["offline"], status["explanation"]) == (200, 1, None)
            line.pop().cancel()  # there is room, and the turn does not come in time
            hurry = {"headers": {TIMEOUT_MS: "400"}}
            answered, status, _ = await user.stage.ask(1, "GET", "/v1/status?explain=true", **hurry)
            assert (answered, status["explanation"]) == (200, None)
        finally:
            may_end.set()
            await asyncio.gather(*line)
        assert (await user.stage.ask(1, "GET", "/v1/status?explain=true"))[1]["explanation"]["symptoms"]
