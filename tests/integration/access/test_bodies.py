"""Bodies of those who may not ask are not read, and those of one principal take only their share of the room."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.controller.connections.body_turns import bytes_at_once
from quorate.controller.identity.bearer_tokens import token_line
from tests.default_parts import node_limits
from tests.integration.access.test_permissions import access_of, bearer, token
from tests.integration.http.test_express import TOPICS, Client, in_lane, new_topics, request
from tests.integration.http.test_strangers import LIVEZ
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

EVE, BEN, ROOT = "User:eve", "User:ben", "User:root"
#: Of which one principal has a quarter: room for one body of these, and not for two.
IN_FLIGHT, BODY = 32_000, 5_000


def head(path: str, principal: str, size: int = BODY) -> bytes:
    """A request without its body."""
    return request(path, bytes(size), f"Authorization: {bearer(principal)['Authorization']}")[:-size]


def tokens_in(directory: Path) -> Path:
    file = directory / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{token_line(token(one), one)}\n" for one in (EVE, BEN, ROOT)))
    return file


@asynccontextmanager
async def guarded(tmp_path: Path) -> AsyncIterator[Stage]:
    file = tokens_in(tmp_path)
    limits = node_limits(bodies_bytes_max=IN_FLIGHT, body_bytes_max=BODY)
    async with stage(2, limits=limits, access=lambda node_id: access_of(file, node_id)) as on:
        yield on


@pytest.mark.parametrize(
    ("path", "lacks"),
    [
        ("/v1/acls", "User:eve needs ALTER on the cluster"),
        ("/v1/answers/what-if", "User:eve needs DESCRIBE on the cluster"),
        ("/v1/broker-rpc/register", "User:eve is not a broker, in whose name it asks"),
    ],
)
async def test_body_is_not_waited_for_where_its_sender_may_not_ask(tmp_path: Path, path: str, lacks: str) -> None:
    async with guarded(tmp_path) as on:
        client = await Client.open(on)
        await client.write(head(path, EVE))
        status, _, refusal = await client.read()
        assert (status, lacks in json.loads(refusal)["message"]) == (403, True)
        await client.write(bytes(BODY) + LIVEZ)
        assert (await client.read())[0] == 200
        client.close()


async def test_who_has_shown_nothing_has_room_for_little(tmp_path: Path) -> None:
    async with stage(1, access=lambda node_id: access_of(tokens_in(tmp_path), node_id)) as on:
        for size, status in ((8_192, 400), (8_193, 413)):
            client = await Client.open(on)
            await client.write(request(TOPICS, b" " * size))
            assert (await client.read())[0] == status
            client.close()


@pytest.mark.parametrize("node_id", [1, 2])
async def test_bodies_of_one_principal_leave_room_for_those_of_others(tmp_path: Path, node_id: int) -> None:
    """On the active controller and on one that passes them on."""
    async with guarded(tmp_path) as on:
        first, beyond, other, own = [await Client.open(on, node_id) for _ in range(4)]
        await first.write(head(TOPICS, EVE))
        await beyond.write(head(TOPICS, EVE))
        status, fields, refusal = await beyond.read()
        assert (status, fields["retry-after"]) == (429, "1")
        assert json.loads(refusal)["message"] == (
            f"bodies of {EVE} in flight would have {2 * BODY} bytes, {IN_FLIGHT // 4} is the most: send fewer"
        )
        assert on.members[node_id].soft.counters().bodies_refused == 1
        await beyond.write(bytes(BODY) + LIVEZ)
        assert (await beyond.read())[0] == 200
        for client, principal in ((other, BEN), (own, ROOT)):
            line = f"Authorization: {bearer(principal)['Authorization']}"
            await client.write(request(TOPICS, new_topics("a"), line))
            assert (await client.read())[0] in (200, 403, 422)
        await first.write(bytes(BODY))
        assert (await first.read())[0] == 400  # it was no JSON, and its room is free again

        async def is_room() -> bool:
            late = await Client.open(on, node_id)
            await late.write(head(TOPICS, EVE) + bytes(BODY))
            try:
                return (await late.read())[0] == 400
            finally:
                late.close()

        await eventually(is_room, "there is room for another body of the same principal")
        for client in (first, beyond, other, own):
            client.close()


async def test_small_bodies_that_wait_for_their_answers_are_counted_too(tmp_path: Path) -> None:
    """Those in the express lane: each takes little, and there may be one for each connection."""
    async with guarded(tmp_path) as on:
        on.session.headers.update(bearer(ROOT))
        await on.register(1, 11)
        wanted = [[f"{'t' * 240}-{client}-{number}" for number in range(6)] for client in range(5)]
        line = f"Authorization: {bearer(EVE)['Authorization']}"
        granted = {
            "resource_type": "CLUSTER",
            "resource_name": "kafka-cluster",
            "principal": EVE,
            "operation": "CREATE",
        }
        reply = await on.ask(1, "POST", "/v1/acls", {"creations": [{**granted, "permission_type": "ALLOW"}]})
        assert reply[0] == 200, reply
        before = in_lane(on)
        *waiting, beyond = [await Client.open(on) for _ in wanted]
        on.quorum.is_held = True
        for client, names in zip((*waiting, beyond), wanted, strict=True):
            asked = request(TOPICS, new_topics(*names, validate_only=False), line)
            assert len(asked.partition(b"\r\n\r\n")[2]) < bytes_at_once(EVE)
            await client.write(asked)
        assert in_lane(on) == before + len(waiting)
        assert (await beyond.read())[0] == 429
        on.quorum.is_held = False
        on.quorum.commit()
        for client in waiting:
            assert (await client.read())[0] == 200
        later = await Client.open(on)
        await later.write(request(TOPICS, new_topics("b"), line))
        assert (await later.read())[0] == 200
        for client in (*waiting, beyond, later):
            client.close()
