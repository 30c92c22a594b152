"""The event stream: it says that something changed, has bounded places, and ends with the server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from quorate.controller.http.page import events
from tests.integration.http_stage import stage
from tests.waiting import PATIENCE_S, eventually

EVENTS = "/v1/events"


async def next_event(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """What the next event tells; what is no event is passed over."""
    while True:
        lines = (await answer.content.readuntil(b"\n\n")).decode().splitlines()
        if lines[0] == "event: changed":
            told: dict[str, Any] = json.loads(lines[1].removeprefix("data: "))
            return told


async def test_event_comes_at_once_and_with_every_change_also_from_a_standby() -> None:
    async with stage() as s, s.session.get(s.urls[1] + EVENTS) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        first = await next_event(answer)
        await s.register(1, 11)
        second = await next_event(answer)
        while second["state_offset"] < s.quorum.committed:  # a look between its records saw some of them
            second = await next_event(answer)
        assert (first["epoch"], second["epoch"], second["active_id"]) == (1, 1, 1)
        assert first["state_offset"] < second["state_offset"]

        s.quorum.elect(None)
        third = await next_event(answer)
        assert (third["epoch"], third["active_id"]) == (2, None)


async def test_silent_stream_says_that_the_controller_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_SILENCE_S", 0.0)
    async with stage(1) as s, s.session.get(s.urls[0] + EVENTS) as answer:
        await next_event(answer)
        assert await answer.content.readuntil(b"\n\n") == b": still here\n\n"


async def test_stream_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_LONGEST_S", 0.1)
    async with stage(1) as s, s.session.get(s.urls[0] + EVENTS) as answer:
        assert (await answer.content.read()).count(b"event: changed") == 1


async def test_places_of_streams_are_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 2)
    async with stage(1) as s:
        held = [await s.session.get(s.urls[0] + EVENTS) for _ in range(2)]
        async with s.session.get(s.urls[0] + EVENTS) as refused:
            assert refused.status == 429
            reply = await refused.json()
            assert "2 event streams are open, 2 is the most" in reply["message"]
            assert int(refused.headers["Retry-After"]) > 0
        held[0].close()

        async def is_let_in() -> bool:
            async with s.session.get(s.urls[0] + EVENTS) as answer:
                return answer.status == 200

        await eventually(is_let_in, "the place of who has gone is free")
        held[1].close()


async def test_stream_ends_when_its_controller_stops() -> None:
    async with stage(1) as s, s.session.get(s.urls[0] + EVENTS) as answer:
        await next_event(answer)
        async with asyncio.timeout(PATIENCE_S):
            stopping = asyncio.ensure_future(s.members[1].stop_serving())
            assert b"event" not in await answer.content.read()
            await stopping
