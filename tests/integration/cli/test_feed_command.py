"""`quorate brokers feed` against three controllers behind real HTTP servers."""

from __future__ import annotations

import json
from typing import Any

from quorate.scripts.terminal import exit_codes
from tests.integration.broker_stage import playing
from tests.integration.commands import Ended, command
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually


async def shown(s: Stage, *options: str) -> Ended:
    return await command(s.urls[0], "brokers", "feed", *options)


async def test_feed_readers_of_all_controllers_are_shown() -> None:
    # The process follows the second controller; the first one is asked.
    async with stage() as s, playing("11-13", [s.urls[1]]) as played:
        await played.ready()
        async with s.session.get(f"{s.urls[2]}/v1/metadata/batches?offset=0&epoch=0") as answer:
            assert answer.status == 200

        async def level() -> Any:
            said = json.loads((await shown(s, "--json")).out)
            sessions = [one for reply in said["controllers"] for one in reply["sessions"]]
            return said if [one["lag_records"] for one in sessions] == [0] else None

        said = await eventually(level, "the reader has everything")
        assert [reply["observed_by"] for reply in said["controllers"]] == [1, 2, 3]
        assert said["silent"] == []
        ended = await shown(s)
        rows = [line[:3] for line in ended.cells]
        assert rows == [["BROKER", "HOSTED", "CONTROLLER"], ["11", "3", "2"], ["others", "0", "3"]]


async def test_feed_controller_that_does_not_answer_is_named() -> None:
    async with stage() as s:
        url = s.urls[2]
        await s.members[3].stop_serving()
        ended = await shown(s)
        assert (ended.code, ended.cells[0][0]) == (exit_codes.DONE, "BROKER")
        assert ended.err.startswith(f"quorate: {url} does not answer: ")
        assert [one["url"] for one in json.loads((await shown(s, "--json")).out)["silent"]] == [url]
