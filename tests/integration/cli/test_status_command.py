"""`quorate status` against servers that answer, are gone, or hold their breath."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.http.handlers import common
from quorate.controller.http.ports import Peer
from quorate.controller.http.routing import Call
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.survey import SURVEY_SECONDS, ControllerSurvey, survey
from quorate.snapshots.image.image import MetadataImage
from tests.integration.commands import Terminal, terminal
from tests.integration.http_servers import closed_port, frozen_server
from tests.integration.http_stage import Stage, stage
from tests.waiting import within


async def ask(urls: list[str]) -> ControllerSurvey:
    async with ControllerClient(urls) as client:
        return await survey(client, urls)


async def command(*arguments: str) -> tuple[int, str, str]:
    """Exit code and output of the CLI in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "quorate.scripts.cli",
        "status",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_survey_finds_all_controllers_from_one() -> None:
    async with stage() as s:
        seen = await ask(s.urls[2:])
        assert (seen.verdict, seen.voter_count, seen.reachable_count) == ("healthy", 3, 3)
        assert sorted(one.node_id or 0 for one in seen.controllers) == [1, 2, 3]


async def test_survey_without_a_quorum_is_there_in_its_time() -> None:
    """Of three controllers one is dead, one frozen, and the third knows of no leader."""
    async with stage() as s, frozen_server() as frozen, closed_port() as gone:
        await s.elect(None)
        urls = [gone, frozen, s.urls[2]]
        s.peers.update({n: type(s.peers[n])(n, url) for n, url in enumerate(urls, start=1)})
        started = asyncio.get_running_loop().time()
        with within(1.0, "nobody is waited for any longer"):
            seen = await ask(urls)
        took = asyncio.get_running_loop().time() - started
        assert (seen.verdict, seen.reasons[0].message) == ("no-quorum", "no quorum: 1 of 3 reachable")
        assert took > SURVEY_SECONDS - 0.1


async def test_survey_of_nobody_says_whom_it_asked() -> None:
    async with closed_port() as gone:
        seen = await ask([gone])
        assert (seen.verdict, seen.status) == ("unreachable", None)
        assert [reason.message for reason in seen.reasons] == [
            "no controller answers: 0 of 1 reachable",
            f"{gone} cannot be reached: connection refused",
        ]


async def exit_code_of(s: Stage) -> int:
    return (await command("--controllers", ",".join(s.urls)))[0]


async def test_status_command_says_it_in_words_in_json_and_by_its_exit_code() -> None:
    async with stage() as s:
        code, out, _ = await command("--controllers", s.urls[1])
        assert (code, out.split()[0]) == (exit_codes.DONE, "HEALTHY")
        s.members[1].soft.lost.add(3)
        code, out, _ = await command("--controllers", s.urls[1], "--json")
        found: dict[str, Any] = json.loads(out)
        assert (code, found["verdict"], found["reachable_count"]) == (exit_codes.REFUSED, "degraded", 3)
        assert ControllerSurvey.model_validate(found).status is not None
        await s.elect(None)
        code, out, _ = await command("--controllers", ",".join(s.urls))
        assert (code, "no quorum: 3 of 3 reachable" in out) == (exit_codes.UNREACHABLE, True)


async def test_status_command_refuses_a_secret_that_it_cannot_read_in_one_sentence() -> None:
    code, out, err = await command("--controllers", "127.0.0.1:1", "--secret-file", "/nowhere")
    assert (code, out) == (exit_codes.REFUSED, "")
    assert "cannot be read" in err
    assert len(err.splitlines()) == 1, err


async def test_status_command_goes_on_watching_until_it_is_interrupted() -> None:
    async with stage() as s:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "quorate.scripts.cli",
            "status",
            *("--controllers", s.urls[0], "--watch", "--json", "--interval", "0.2"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        verdicts = [json.loads(await process.stdout.readline())["verdict"] for _ in range(2)]
        await s.elect(None)
        while verdicts[-1] != "no-quorum":
            verdicts.append(json.loads(await process.stdout.readline())["verdict"])
        process.send_signal(signal.SIGINT)
        assert await process.wait() == exit_codes.INTERRUPTED
        assert set(verdicts) == {"healthy", "no-quorum"}


@pytest.fixture
def explained_by(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the controllers that were asked to explain, as it happens."""
    asked: list[int] = []
    explain = common._explanation_in_time

    async def counted(call: Call, image: MetadataImage) -> ExplainReply | None:
        asked.append(call.node.node_id)
        return await explain(call, image)

    monkeypatch.setattr(common, "_explanation_in_time", counted)
    return asked


async def lag(user: Terminal) -> None:
    """A partition is under-replicated from now on."""
    await user.run("topics", "create", "orders", "--replica-assignment", "11:12")
    fence = {"broker_id": 12, "broker_epoch": user.epochs[12], "current_metadata_offset": 2**60, "want_fence": True}
    assert (await user.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", fence))[1]["is_fenced"]


async def test_one_controller_explains_what_is_wrong_not_all_of_them(explained_by: list[int]) -> None:
    async with terminal({11: "a", 12: "b"}) as user:
        s = user.stage
        healthy = await ask(s.urls)
        assert healthy.status is not None
        assert (explained_by, healthy.status.explanation) == ([], None)
        await lag(user)
        assert await symptoms(s) == ["PARTITIONS_UNDER_REPLICATED"]
        assert explained_by == [1], "the active one, whose word counts"
        await s.elect(None)
        assert await symptoms(s) == ["PARTITIONS_UNDER_REPLICATED"]
        assert sorted(explained_by[1:]) == [1, 2, 3], "any of them may be the one that knows most"


@pytest.mark.parametrize("silent", [frozen_server, closed_port])
async def test_standby_explains_where_the_active_controller_gives_no_status(
    silent: Callable[[], AbstractAsyncContextManager[str]], explained_by: list[int]
) -> None:
    async with terminal({11: "a", 12: "b"}) as user, silent() as url:
        s = user.stage
        await lag(user)
        s.peers[1] = Peer(1, url)
        with within(1.0, "nobody is waited for any longer"):
            seen = await ask([url, *s.urls[1:]])
        assert seen.reasons[0].code == "ACTIVE_CONTROLLER_SILENT"
        assert seen.status is not None
        assert seen.status.explanation is not None
        assert explained_by == [seen.status.quorum.observed_by], "the one that is shown"


async def symptoms(s: Stage) -> list[str]:
    """Codes of what the status explains, from three controllers."""
    seen = await ask(s.urls)
    assert seen.reachable_count == 3
    assert seen.status is not None
    assert seen.status.explanation is not None
    return [one.code for one in seen.status.explanation.symptoms]
