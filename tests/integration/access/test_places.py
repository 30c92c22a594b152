"""A principal that may do nothing, and says nothing, takes no place from those whom the cluster lives by."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from quorate.controller.identity.bearer_tokens import token_line
from tests.default_parts import node_limits
from tests.integration.access.test_permissions import access_of, bearer, token
from tests.integration.http.test_express import FRAMEWORK, HEARTBEAT, TOPICS, Client, new_topics, request
from tests.integration.http_stage import Stage, stage

EVE, ROOT, BROKER = "User:eve", "User:root", "Broker:11"
PLACES = 32
#: A quarter.
SHARE = 8


def shown(principal: str) -> str:
    return f"Authorization: {bearer(principal)['Authorization']}"


async def asked(on: Stage, principal: str, *lines: str) -> Client:
    """A connection on which this principal has asked for something once, and has been refused."""
    client = await Client.open(on)
    await client.write(request(TOPICS, new_topics("a"), shown(principal), *lines))
    assert (await client.read())[0] in (200, 403, 422)
    return client


async def test_silent_principal_keeps_no_broker_and_no_super_user_out(tmp_path: Path) -> None:
    """Half of its connections are in the lane, and half are the framework's."""
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{token_line(token(one), one)}\n" for one in (EVE, ROOT, BROKER)))
    limits = node_limits(connections_max=PLACES)
    async with stage(1, limits=limits, access=lambda node_id: access_of(file, node_id)) as on:
        on.session.headers.update(bearer(ROOT))
        epoch = await on.register(1, 11)
        broker = await Client.open(on)
        beat = request(HEARTBEAT, {"broker_id": 11, "broker_epoch": epoch, "current_metadata_offset": 1}, shown(BROKER))
        await broker.write(beat)
        assert (await broker.read())[0] == 200

        silent = [await asked(on, EVE, *[FRAMEWORK] * (number % 2)) for number in range(2 * PLACES)]
        for gone in silent[:-SHARE]:
            status, _, body = await gone.read()
            assert status == 429
            assert json.loads(body)["message"] == (
                f"{SHARE + 1} of {PLACES} connections are {EVE}'s, and others want the place: open fewer"
            )
            assert await gone.is_closed()
        for kept in silent[-SHARE:]:
            await kept.write(request(TOPICS, new_topics("a"), shown(EVE)))
            assert (await kept.read())[0] == 403

        others = await asyncio.gather(*(asked(on, ROOT) for _ in range(8)))
        late = await Client.open(on)
        for client in (broker, late):
            await client.write(beat)
            status, _, body = await client.read()
            assert (status, json.loads(body)["is_fenced"]) == (200, False)
        displaced = on.members[1].soft.counters().connections_displaced
        assert displaced["principal"] == 2 * PLACES - SHARE
        for client in (*silent, *others, broker, late):
            client.close()
