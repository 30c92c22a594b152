"""`quorate what-if`: on files of a captured cluster, and against controllers behind real HTTP servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone, terminal
from tests.integration.http_stage import stage

STATIC = Path(__file__).parents[2] / "data" / "kafka" / "static"
M2 = str(STATIC / "m2" / "log")
STOP_11 = {"event": "stop", "brokers": [11]}
BAD = [
    ("no event", [], 400, "INVALID_REQUEST", "no event was named"),
    ("nobody", [{"event": "stop"}], 400, "INVALID_REQUEST", "step 1 (stop): it wants brokers or racks"),
    ("strange list", [STOP_11 | {"topics": [{"name": "t", "partitions": []}]}], 400, "INVALID_REQUEST", "about topics"),
    ("stranger", [STOP_11, {"event": "crash", "brokers": [9]}], 404, "BROKER_ID_NOT_REGISTERED", "step 2 (crash): no"),
    ("one that runs", [{"event": "start", "brokers": [11]}], 400, "INVALID_REQUEST", "broker 11 runs"),
    ("no such rack", [{"event": "stop", "racks": ["z"]}], 400, "INVALID_REQUEST", "rack 'z': racks are a"),
    ("no directory", [{"event": "lose-directory", "directories": ["x" * 21 + "w"]}], 400, "INVALID_REQUEST", "log"),
    (
        "no such topic",
        [{"event": "reassign", "topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [11]}]}]}],
        404, "UNKNOWN_TOPIC_OR_PARTITION", "t-0: Unable to find a topic named t",
    ),
]  # fmt: skip


async def asked(*words: str) -> dict[str, Any]:
    said = await alone("what-if", *words, "--from", M2, "--json")
    assert said.code == exit_codes.DONE, said
    reply: dict[str, Any] = json.loads(said.out)
    return reply


async def test_crashed_brokers_that_come_back_lead_as_they_did_in_the_captured_cluster() -> None:
    """Broker 13 was killed: what it had not flushed when it went down is lost, in 780 partitions."""
    reply = await asked("start", "broker", "13")
    assert reply["before"]["partitions"]["offline"] == 782
    assert reply["after"]["partitions"]["offline"] == 2
    assert reply["after"]["elections"] == {"from_eligible": 0, "last_known": 780, "unclean": 0}

    both = await asked("start", "broker", "13", "14,", "catch", "up")
    assert (both["before"]["verdict"], both["after"]["verdict"]) == ("critical", "healthy")
    assert (both["after"]["partitions"]["under_replicated"], both["after"]["partitions"]["reassigning"]) == (0, 0)


async def test_state_before_is_what_status_says_of_it() -> None:
    status = json.loads((await alone("status", "--from", M2, "--json")).out)["status"]

    assert (await asked("catch", "up"))["before"] == {**status, "explanation": None}


async def test_answer_for_people_shows_both_states_and_who_is_not_what_he_was() -> None:
    shown = await alone("what-if", "crash", "rack", "a,", "start", "broker", "13", "--from", M2)
    assert shown.code == exit_codes.DONE
    assert shown.cells[0] == ["BEFORE", "AFTER"]
    assert ["verdict", "critical", "critical"] in shown.cells
    assert ["broker", "11", "active", "fenced"] in shown.cells
    assert ["broker", "13", "fenced", "active"] in shown.cells
    assert any(line.startswith("- brokers 11, 14 are fenced") for line in shown.out.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stop", "brocker", "11"], "'stop brocker 11' is no event: say stop|crash|start broker"),
        (["stop", "broker", "x"], "'x' is no broker id"),
        (["stop", "broker", "11,"], "'' is no event"),
        (["lose", "directory", "12"], "12"),
        (["apply", "no-such-file.json"], "no-such-file.json cannot be read"),
    ],
)
async def test_words_that_say_no_event_are_a_mistake_in_use(words: list[str], said: str) -> None:
    refused = await alone("what-if", *words, "--from", M2)

    assert refused.code == exit_codes.USAGE
    assert said in refused.said


async def test_running_controllers_answer_and_nothing_is_changed(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    moved = {"topic": "orders", "partition": 0, "replicas": [12], "log_dirs": ["any"]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}), encoding="utf-8")
    async with terminal({11: "a", 12: "b"}) as user:
        await user.run("topics", "create", "orders", "--replica-assignment", "11")
        end = user.stage.quorum.log_end_offset

        words = ("apply", f"{plan},", "catch", "up,", "stop", "broker", "11")
        reply = json.loads((await user.run("what-if", *words, "--json")).out)
        assert (reply["after"]["partitions"]["offline"], reply["after"]["partitions"]["total"]) == (0, 1)
        alone = json.loads((await user.run("what-if", "stop", "broker", "11", "--json", "--at", str(end))).out)
        assert alone["after"]["partitions"]["offline"] == 1

        assert (await user.run("partitions", "list", "--offline")).cells[1:] == []
        assert user.stage.quorum.log_end_offset == end


async def test_plan_is_applied_with_the_moves_of_all_its_steps_and_other_changes_are_refused(tmp_path: Path) -> None:
    drain, alter = tmp_path / "drain.json", tmp_path / "alter.json"
    async with terminal({11: "a", 12: "b", 13: "a"}) as user:
        await user.run("topics", "create", "orders", "--replica-assignment", "11,11")
        await user.run("brokers", "drain", "11", "--at-once", "1", "--plan", str(drain))
        assert len(json.loads(drain.read_text())["steps"]) == 2

        reply = json.loads((await user.run("what-if", "apply", str(drain), "--json")).out)
        assert (reply["before"]["partitions"]["reassigning"], reply["after"]["partitions"]["reassigning"]) == (0, 2)
        words = ("apply", f"{drain},", "catch", "up,", "crash", "broker", "11")
        reply = json.loads((await user.run("what-if", *words, "--json")).out)
        assert (reply["after"]["partitions"]["offline"], reply["after"]["partitions"]["reassigning"]) == (0, 0)

        await user.run("configs", "alter", "topic/orders", "--set", "retention.ms=5", "--plan", str(alter))
        refused = await user.run("what-if", "apply", str(alter))
        assert (refused.code, refused.out) == (exit_codes.USAGE, "")
        assert "alter.json: step 1 is incremental_alter_configs, and what-if applies no other changes" in refused.said
        drain.write_text(drain.read_text().replace("quorate-plan", "other"))
        assert "drain.json is no plan: format: " in (await user.run("what-if", "apply", str(drain))).said


@pytest.mark.parametrize(("name", "steps", "status", "error", "says"), BAD, ids=[row[0] for row in BAD])
async def test_wrong_event_is_refused_with_its_place(
    name: str, steps: list[Any], status: int, error: str, says: str
) -> None:
    async with stage(1) as s:
        await s.register(1, 11, "a")
        answered, reply, _ = await s.ask(1, "POST", "/v1/answers/what-if", {"steps": steps})

    assert (answered, reply["error"]) == (status, error)
    assert says in reply["message"]
