"""`quorate can-stop`: on files of a captured cluster, and against controllers behind real HTTP servers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.api.answers.answer_models import NODES_MAX
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from tests.integration.commands import alone, end_of, start, terminal
from tests.integration.http_stage import Bad, stage

STATIC = Path(__file__).parents[2] / "data" / "kafka" / "static"
BAD = [
    Bad("nobody named", "GET", "/v1/answers/can-stop", None, 400, "INVALID_REQUEST", "of one kind"),
    Bad("both kinds", "GET", "/v1/answers/can-stop?brokers=11&controllers=1", None, 400, "INVALID_REQUEST", "one kind"),
    Bad("no id", "GET", "/v1/answers/can-stop?brokers=11,x", None, 400, "INVALID_REQUEST", "no list of ids"),
    Bad("id too great", "GET", f"/v1/answers/can-stop?brokers={2**31}", None, 400, "INVALID_REQUEST", "greatest"),
    Bad(
        "too many", "GET", f"/v1/answers/can-stop?brokers={','.join(map(str, range(NODES_MAX + 1)))}",
        None, 400, "INVALID_REQUEST", "is the most",
    ),
    Bad("stranger", "GET", "/v1/answers/can-stop?brokers=77", None, 404, "BROKER_ID_NOT_REGISTERED", "no broker 77"),
    Bad("no voter", "GET", "/v1/answers/can-stop?controllers=8", None, 400, "INVALID_REQUEST", "no controller 8"),
    Bad("quorum of old", "GET", "/v1/answers/can-stop?controllers=1&at=3", None, 400, "INVALID_REQUEST", "no log or"),
]  # fmt: skip


def only_on(image: MetadataImage, broker: int) -> set[tuple[str, int]]:
    """Partitions that the broker leads, with nobody else in sync: read off one by one."""
    return {
        (topic.name, number)
        for topic in image.topics.by_id.values()
        for number, partition in image.partitions.partitions_of(topic.id)
        if partition.leader == broker and set(partition.isr) == {broker}
    }


def named(reason: dict[str, Any]) -> set[tuple[str, int]]:
    return {(topic["topic"], number) for topic in reason["topics"] for number in topic["partitions"]}


async def test_answer_from_files_names_every_partition_that_only_the_broker_has() -> None:
    log = STATIC / "m2" / "log"
    image = load_image(log)

    said = await alone("can-stop", "broker", "11", "--from", str(log), "--json", "--limit", "10000")

    reply = json.loads(said.out)
    offline = reply["reasons"][0]
    assert (said.code, reply["may_stop"], reply["form"]) == (exit_codes.REFUSED, False, 1)
    covers = image.provenance
    assert (reply["state_offset"], reply["state_time_ms"]) == (covers.end_offset, covers.log_time_ms)
    assert [reason["code"] for reason in reply["reasons"]] == ["PARTITIONS_OFFLINE", "PARTITIONS_UNDER_MIN_ISR"]
    assert named(offline) == only_on(image, 11)
    assert offline["count"] == len(named(offline)) > 700


async def test_answer_names_no_more_partitions_than_asked_for_and_what_is_fenced_already() -> None:
    log = str(STATIC / "m2" / "log")
    few = await alone("can-stop", "broker", "11", "--from", log, "--limit", "3")
    assert few.out.startswith("broker 11 may not be stopped:\n- 741 partitions would have no leader")
    assert Counter(line.split(" partitions more")[0] for line in few.out.splitlines())["    and 738"] == 1

    down = await alone("can-stop", "broker", "13", "14", "--from", log)
    assert down.code == exit_codes.DONE
    assert down.out.startswith("brokers 13, 14 may be stopped: no partition more")
    assert down.out.endswith("\nFenced already: 13, 14.\n")


async def test_waiting_for_files_or_an_old_state_is_refused() -> None:
    for place in (("--from", str(STATIC / "m2" / "log")), ("--at", "3")):
        said = await alone("can-stop", "broker", "11", "--wait", *place)
        assert said.code == exit_codes.USAGE, said
        assert "does not change" in said.err


async def test_running_controllers_answer_and_waiting_ends_when_the_reason_does() -> None:
    async with terminal({11: "a", 12: "b"}) as user:
        assert (await user.run("topics", "create", "kept", "--replica-assignment", "11:12")).code == exit_codes.DONE
        assert (await user.run("topics", "create", "alone", "--replica-assignment", "12")).code == exit_codes.DONE

        assert (await user.run("can-stop", "broker", "11", "--crash")).code == exit_codes.DONE
        refused = await user.run("can-stop", "broker", "12")
        assert refused.code == exit_codes.REFUSED
        assert "    alone: 0\n" in refused.out
        controllers = await user.run("can-stop", "controller", "1")
        assert (controllers.code, "may be stopped: 2 voters would be left of 3" in controllers.out) == (0, True)
        everybody = await user.run("can-stop", "controller", "1", "2", "3")
        assert (everybody.code, "another one is elected" in everybody.out) == (exit_codes.REFUSED, False), everybody

        waiting = await start(user.stage.urls[1], "can-stop", "broker", "12", "--wait")
        assert waiting.stderr is not None
        assert (await waiting.stderr.readline()).startswith(b"quorate: waiting: broker 12 may not be stopped: 1 part")
        assert (await user.run("topics", "delete", "alone", "--yes")).code == exit_codes.DONE
        done = await end_of(waiting)
        assert (done.code, done.out[:25]) == (exit_codes.DONE, "broker 12 may be stopped:")


async def test_no_broker_may_be_stopped_and_no_partition_is_well_while_no_controller_is_active() -> None:
    async with terminal({11: "a", 12: "b"}) as user:
        assert (await user.run("topics", "create", "kept", "--replica-assignment", "11:12")).code == exit_codes.DONE
        assert (await user.run("can-stop", "broker", "11")).code == exit_codes.DONE
        assert (await user.run("explain", "topic", "kept")).code == exit_codes.DONE
        assert "Not now" not in (await user.run("what-if", "stop", "broker", "11")).out
        await user.stage.elect(None)

        url = user.stage.urls[1]
        said = await end_of(await start(url, "can-stop", "broker", "11", "--json"))
        reply = json.loads(said.out)
        assert (said.code, reply["may_stop"]) == (exit_codes.REFUSED, False)
        assert [reason["code"] for reason in reply["reasons"]] == ["QUORUM_NOT_KNOWN"]
        explained = await end_of(await start(url, "explain", "topic", "kept"))
        assert explained.code != exit_codes.DONE
        assert "no active controller is known" in explained.out
        assert "start controllers until a majority runs, 2 of 3" in explained.out
        rehearsed = await end_of(await start(url, "what-if", "stop", "broker", "11"))
        assert rehearsed.out.startswith("Not now: no active controller is known")


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_wrong_question_is_refused_with_the_rule(bad: Bad) -> None:
    async with stage() as s:
        status, reply, _ = await s.ask(1, bad.method, bad.path)

    assert (status, reply["error"]) == (bad.status, bad.error)
    assert bad.says in reply["message"]
