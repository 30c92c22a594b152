"""Work that is done for those who have no access: a look at the head of the request, and the answer."""

from __future__ import annotations

import json
import time
import zlib

import pytest

from tests.integration.http.test_express import TOPICS, Client, new_topics, request
from tests.integration.http_stage import stage

SECRET = b"s" * 32
SHOWN = f"Authorization: Bearer {SECRET.decode()}"
INFLATED_MEGABYTES = 2_000


def bomb() -> bytes:
    """A body that is a thousand times as long once it is inflated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return begin + block * (INFLATED_MEGABYTES - 1) + packer.flush()


LIVEZ = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def test_compressed_body_is_not_inflated() -> None:
    async with stage(1, shared_secret=SECRET) as on:
        stranger, known = await Client.open(on), await Client.open(on)
        body = bomb()
        used = time.process_time()

        stranger._writer.write(request(TOPICS, body, "Content-Encoding: gzip"))
        assert (await stranger.read())[0] == 401
        assert await stranger.is_closed()
        # The second request is answered once all of the first one's body was taken.
        known._writer.write(request(TOPICS, body, "Content-Encoding: gzip", SHOWN) + LIVEZ)
        status, _, refusal = await known.read()
        assert (await known.read())[0] == 200

        # Inflated, one of them takes more than a second of the processor.
        assert time.process_time() - used < 0.5
        assert status == 415
        assert json.loads(refusal)["message"] == "content encoding 'gzip' is not taken here: send bodies as they are"
        for client in (stranger, known):
            client.close()


async def test_stranger_who_never_sends_his_body_has_no_connection_any_more() -> None:
    async with stage(1, shared_secret=SECRET) as on:
        client = await Client.open(on)
        await client.write(request(TOPICS, new_topics("a"))[:-1])
        status, fields, _ = await client.read()
        assert (status, fields["connection"]) == (401, "close")
        assert await client.is_closed()
        client.close()


async def test_nobody_is_asked_for_a_body_before_it_is_known_who_it_is() -> None:
    async with stage(1, shared_secret=SECRET) as on:
        stranger, known = await Client.open(on), await Client.open(on)
        head, end, body = request("/v1/acls", {"creations": []}, "Expect: 100-continue").partition(b"\r\n\r\n")
        await stranger.write(head + end)
        assert (await stranger.read())[0] == 401
        assert await stranger.is_closed()
        await known.write(head + f"\r\n{SHOWN}".encode() + end)
        assert await known._reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await known.write(body)
        assert (await known.read())[0] == 200
        for client in (stranger, known):
            client.close()


async def test_expectation_that_nobody_knows_is_refused() -> None:
    async with stage(1) as on:
        client = await Client.open(on)
        await client.write(request(TOPICS, new_topics("a"), "Expect: the-unexpected"))
        status, _, refusal = await client.read()
        assert (status, json.loads(refusal)["message"]) == (
            417,
            "header Expect: 'the-unexpected' is not known, 100-continue is",
        )
        client.close()


@pytest.mark.parametrize(
    ("page", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://example.org"}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
async def test_page_of_another_site_does_nothing_in_its_readers_name(page: dict[str, str], status: int) -> None:
    async with stage(1) as on:
        before = len(on.members[1].checkpoints.infos)
        answered, reply, fields = await on.ask(1, "POST", "/v1/checkpoints", headers=page)
        assert answered == status, reply
        assert (len(on.members[1].checkpoints.infos) > before) == (status == 200)
        assert (await on.ask(1, "GET", "/v1/status?local=true", headers=page))[0] == status
        assert (fields["X-Content-Type-Options"], fields["Cross-Origin-Resource-Policy"]) == ("nosniff", "same-origin")


async def test_own_page_may_ask() -> None:
    async with stage(1) as on:
        own = {"Origin": on.members[1].url, "Sec-Fetch-Site": "same-origin"}
        assert (await on.ask(1, "GET", "/v1/status?local=true", headers=own))[0] == 200


#: What an answer says of the cluster and of the software.
TELLING = {"x-quorate-cluster", "x-quorate-active", "x-quorate-epoch", "x-quorate-high-watermark", "server"}


async def test_who_may_not_ask_and_who_probes_learns_nothing_of_the_cluster() -> None:
    async with stage(1, shared_secret=SECRET) as on:
        for head, status, said in (
            (b"GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n", 401, set()),
            (request(TOPICS, new_topics("a")), 401, set()),
            (LIVEZ, 200, set()),
            (LIVEZ.replace(b"livez", b"readyz"), 200, set()),
            (request(TOPICS, new_topics("a"), SHOWN), 422, TELLING - {"server"}),
        ):
            client = await Client.open(on)
            await client.write(head)
            answered, fields, body = await client.read()
            client.close()
            assert (answered, TELLING & set(fields)) == (status, said), head
            assert fields["x-quorate-node"] == "1"
            if b"readyz" in head:
                assert json.loads(body) == {"ok": True, "node_id": 1, "checks": []}
        shown = {"Authorization": f"Bearer {SECRET.decode()}"}
        _, reply, _ = await on.ask(1, "GET", "/readyz", headers=shown)
        assert all(check["message"] for check in reply["checks"])


@pytest.mark.parametrize(("version", "status"), [(b"HTTP/1.0", 403), (b"HTTP/1.1", 400)])
async def test_request_that_names_nobody_whom_it_asks_is_refused_without_a_secret(version: bytes, status: int) -> None:
    async with stage(1) as on:
        client = await Client.open(on)
        whole = request(TOPICS, new_topics("a", validate_only=False))
        await client.write(whole.replace(b"Host: 127.0.0.1\r\n", b"").replace(b"HTTP/1.1", version))
        assert (await client.read())[0] == status
        assert not on.members[1].controller.stable.topics.by_name
        client.close()
