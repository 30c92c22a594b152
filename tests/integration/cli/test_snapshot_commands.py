"""`quorate snapshot take` and `list` against controllers behind real HTTP servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from quorate.scripts.terminal import exit_codes
from quorate.snapshots.image_digest import digest_image
from tests.default_parts import node_limits
from tests.integration.commands import Ended, command, end_of, start
from tests.integration.http_stage import stage
from tests.waiting import eventually


def document(ended: Ended) -> Any:
    return json.loads(ended.out)


async def test_snapshot_is_taken_by_the_first_controller_and_listed() -> None:
    async with stage() as s:
        url = s.urls[1]
        member = s.members[2]
        taken = document(await command(url, "snapshot", "take", "--json"))["taken"]
        digest = digest_image(member.controller.stable).text
        assert [(one["node_id"], one["is_written"], one["failure"]) for one in taken] == [(2, True, "")]
        assert taken[0]["checkpoint"]["digest"] == digest
        again = await command(url, "snapshot", "take")
        assert (again.code, again.out.splitlines()[1].split()) == (exit_codes.DONE, ["digest", digest])
        assert again.out.startswith("Controller 2 has a checkpoint of everything already: of the state at offset ")
        (listed,) = document(await command(url, "snapshot", "list", "--json"))["places"]
        assert (listed["node_id"], listed["checkpoints"]) == (2, [taken[0]["checkpoint"]])
        assert document(await command(s.urls[0], "snapshot", "list", "--json"))["places"][0]["checkpoints"] == []


async def test_snapshot_is_taken_by_every_controller() -> None:
    async with stage() as s:
        taken = document(await command(s.urls[0], "snapshot", "take", "--all", "--json"))["taken"]
        assert [(one["node_id"], one["is_written"]) for one in taken] == [(1, True), (2, True), (3, True)]
        assert len({one["checkpoint"]["digest"] for one in taken}) == 1
        ended = await command(s.urls[0], "snapshot", "list", "--all")
        assert ended.code == exit_codes.DONE
        assert [line.split()[1] for line in ended.out.splitlines() if line.startswith("controller")] == [
            "1,",
            "2,",
            "3,",
        ]


async def test_snapshot_of_a_controller_that_does_not_answer_is_named() -> None:
    async with stage() as s:
        url = s.urls[2]
        await s.members[3].stop_serving()
        ended = await command(s.urls[0], "snapshot", "take", "--all")
        assert ended.code == exit_codes.UNREACHABLE
        assert f"quorate: {url}: " in ended.err
        assert ended.out.count("wrote a checkpoint") == 2
        taken, listed, all_listed = await asyncio.gather(
            command(url, "snapshot", "take"),
            command(url, "snapshot", "list"),
            command(s.urls[0], "snapshot", "list", "--all", "--json"),
        )
        assert (taken.code, listed.code) == (exit_codes.UNREACHABLE, exit_codes.UNREACHABLE)
        assert all_listed.code == exit_codes.REFUSED
        assert [bool(one["failure"]) for one in document(all_listed)["places"]] == [False, False, True]


async def test_snapshot_that_is_refused_is_exit_code_1() -> None:
    async with stage(1, active=None) as s:
        ended = await command(s.urls[0], "snapshot", "take")
        assert (ended.code, ended.out) == (exit_codes.REFUSED, "")
        assert "applied nothing yet" in ended.err


async def test_snapshot_that_takes_longer_than_a_request_is_waited_for() -> None:
    async with stage(1, limits=node_limits(request_timeout_ms=300)) as s:
        writing = s.members[1].writing
        writing.is_held = True
        process = await start(s.urls[0], "snapshot", "take", "--json")

        async def begun() -> bool:
            return writing.writer.writing_offset is not None

        await eventually(begun, "a checkpoint is being written")
        assert (await command(s.urls[0], "snapshot", "take")).code == exit_codes.REFUSED
        writing.is_held = False
        writing.write_waiting()
        (taken,) = document(await end_of(process))["taken"]
        assert (taken["is_written"], taken["failure"]) == (True, "")
