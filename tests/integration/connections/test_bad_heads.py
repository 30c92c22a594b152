"""What comes and is no request: it is refused in the form of all errors, and no traceback tells of it."""

from __future__ import annotations

import json

import pytest

from quorate.controller.connections.head_lengths import HEAD_BYTES_MAX, HEAD_END
from tests.integration.http.test_express import FRAMEWORK, HOST, TOPICS, Client, new_topics, request
from tests.integration.http_stage import stage
from tests.waiting import eventually

LONG = b"a" * 9_000
#: Each line of a length that may be; the head does not end.
MANY = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 8_000) for number in range(6))


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + LONG + b"\r\n\r\n", 431, "at most 8190 bytes"),
        (b"GET /livez?" + LONG + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431, "at most 8190 bytes"),
        (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + MANY, 431, "at most 40960 bytes"),
        (b"\r\n\r\n" + b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + MANY, 431, "at most 40960 bytes"),
        (b"GET /livez HTTP/1.1\r\nno header\r\n\r\n", 400, "no request of HTTP/1.1"),
        (b"GET /livez SPDY/9\r\n\r\n", 400, "no request of HTTP/1.1"),
        (b"\x00\x01\x02\r\n\r\n", 400, "no request of HTTP/1.1"),
    ],
    ids=[
        "long header",
        "long line",
        "many headers",
        "behind empty lines",
        "no header",
        "another protocol",
        "rubbish",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_head_that_cannot_be_read_is_refused_in_the_form_of_all_errors(
    sent: bytes, status: int, says: str, caplog: pytest.LogCaptureFixture, *, is_first: bool
) -> None:
    async with stage(1) as on:
        client = await Client.open(on)
        if not is_first:
            await client.write(request(TOPICS, new_topics("a")))
            await client.read()
        await client.write(sent)
        answered, fields, body = await client.read()
        reply = json.loads(body)
        assert (answered, reply["error"], reply["request_id"]) == (status, "INVALID_REQUEST", fields["x-request-id"])
        assert says in reply["message"]
        assert "server" not in fields
        assert "x-quorate-cluster" not in fields  # nobody knows whom it is told
        assert await client.is_closed()
        client.close()
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")]


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_head_is_as_long_when_its_end_comes_in_pieces(at: int) -> None:
    line = f"GET /livez HTTP/1.1\r\nHost: {HOST}\r\n".encode()
    longest = line + MANY[: HEAD_BYTES_MAX - len(line)]
    async with stage(1) as on:
        client = await Client.open(on)
        await client.write(f"GET /livez HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        assert (await client.read())[0] == 200
        for head, status in ((longest, 200), (longest + b"a", 431)):
            await client.write(head + HEAD_END[:at], HEAD_END[at:])
            assert (await client.read())[0] == status
        client.close()


async def test_bodies_are_none_of_a_head_whether_they_are_read_or_thrown_away() -> None:
    """Nor is what comes behind them, but for the head that it is."""
    async with stage(1) as on:
        client = await Client.open(on)
        body = b"[" + b" " * (3 * HEAD_BYTES_MAX) + b"]"
        refused = f"POST /v1/nothing HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for sent, status in ((request(TOPICS, body), 400), (refused + body, 404), (request(TOPICS, body), 400)):
            await client.write(*(sent[at : at + 10_000] for at in range(0, len(sent), 10_000)))
            assert (await client.read())[0] == status
        await client.write(request(TOPICS, body) + request(TOPICS, body) + b"GET /livez HTTP/1.1\r\n" + MANY)
        assert [(await client.read())[0] for _ in range(2)] == [400, 400]
        await client.write(MANY)
        assert (await client.read())[0] == 431
        assert await client.is_closed()
        client.close()


async def test_follower_that_went_leaves_no_traceback_when_its_stream_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with stage(1) as on:
        client = await Client.open(on)
        feed = f"/v1/metadata/batches?offset={on.quorum.committed}&epoch=1&stream=true"
        await client.write(f"GET {feed} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        server = on.members[1]._server
        assert server is not None
        gate = server._lane.gate

        async def follows() -> bool:
            return on.members[1].node.feed.followers == 1

        async def is_gone() -> bool:
            return not gate.handed_over

        await eventually(follows, "the stream is open")
        client._writer.transport.abort()
        await eventually(is_gone, "the follower has gone, and nothing was sent to it since")
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")]


@pytest.mark.parametrize("at", [0, 50], ids=["with the body before it", "behind that"])
async def test_head_behind_others_that_is_too_long_is_refused_when_those_are_answered(at: int) -> None:
    too_long = b"GET /livez HTTP/1.1\r\n" + MANY
    body = json.dumps(new_topics("a", validate_only=False)).encode()
    whole = request(TOPICS, body, FRAMEWORK)
    in_chunks = whole.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked").partition(HEAD_END)[0]
    in_chunks += HEAD_END + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    async with stage(1) as on:
        await on.register(1, 1)
        client = await Client.open(on)
        on.quorum.is_held = True
        await client.write(whole + in_chunks + request(TOPICS, b"{}") + too_long[:at], too_long[at:])
        server = on.members[1]._server
        assert server is not None
        gate = server._lane.gate

        async def is_too_long() -> bool:
            return any(one._heads.is_too_long for one in gate.handed_over)

        await eventually(is_too_long, "what is too long has come")
        on.quorum.is_held = False
        on.quorum.commit()
        assert [(await client.read())[0] for _ in range(4)] == [200, 409, 400, 431]
        assert await client.is_closed()
        client.close()


async def test_last_line_end_of_a_head_that_comes_with_its_long_body_is_none_of_the_head() -> None:
    async with stage(1) as on:
        client = await Client.open(on)
        body = b"[" + b" " * (3 * HEAD_BYTES_MAX) + b"]"
        whole = request(TOPICS, body)
        at = whole.index(body) - 2
        await client.write(whole + whole[:at], whole[at:])
        assert [(await client.read())[0] for _ in range(2)] == [400, 400]
        client.close()
