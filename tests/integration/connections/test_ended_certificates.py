"""A connection ends with the certificate that it was made by, or with the trust in its CA: between two requests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from quorate.scripts.certificates.authority import CertificateAuthority
from tests.default_parts import node_limits
from tests.integration.http.test_express import FRAMEWORK, TOPICS, Client, new_topics, request
from tests.integration.http_stage import Stage, stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context
from tests.waiting import eventually

OURS, OTHER = authority(), authority("new")
HOST = "127.0.0.1"
#: Connections are looked at four times within it.
HEAD_MS = 400
CHANGES_NOTHING = request(TOPICS, new_topics("a"))
#: Ways to send a request that stays in the express lane, and one that does not.
WAYS = pytest.mark.parametrize(
    "asked", [CHANGES_NOTHING, request(TOPICS, new_topics("a"), FRAMEWORK)], ids=["short", "long"]
)


class Serving:
    """A controller whose CAs change."""

    def __init__(self) -> None:
        self.context = self._trusting(OURS)
        self.on: Stage

    def _trusting(self, first: CertificateAuthority, *others: CertificateAuthority) -> ssl.SSLContext:
        made = server_context(issued(OURS, HOST), first, wants=ssl.CERT_OPTIONAL)
        for one in others:
            made.load_verify_locations(cadata=one.pair.certificate.decode())
        return made

    def trust(self, *clients: CertificateAuthority) -> None:
        """From now on clients are those of these CAs."""
        self.context = self._trusting(*clients)

    async def client(self, shown: CertificateAuthority | None = OURS, ends: datetime | None = None) -> Client:
        """A connection with a certificate of this CA, or without one."""
        certificate = None if shown is None else issued(shown, "somebody", ends=ends)
        port = int(self.on.members[1].url.rpartition(":")[2])
        return await Client.open_port(port, client_context([OURS], certificate))


@asynccontextmanager
async def serving() -> AsyncIterator[Serving]:
    made = Serving()
    trusting = client_context([OURS])
    tls = SpokenTls(lambda: made.context, lambda: trusting)
    async with stage(1, tls=tls, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        made.on = on
        yield made


async def answered(client: Client, asked: bytes) -> bool:
    """Whether the connection goes on behind the answer to this."""
    await client.write(asked)
    _, fields, _ = await client.read()
    return fields.get("connection", "").lower() != "close"


@WAYS
async def test_idle_connection_is_closed_once_the_ca_of_its_certificate_is_retired(asked: bytes) -> None:
    async with serving() as s:
        client, stranger = await s.client(), await s.client(None)
        assert await answered(client, asked)
        assert await answered(stranger, asked)
        s.trust(OURS, OTHER)
        assert await answered(client, asked)

        s.trust(OTHER)
        assert await client.is_closed()
        assert await answered(stranger, asked), "it was made with no certificate"
        client.close()
        stranger.close()


@WAYS
async def test_busy_connection_is_told_that_it_ends_behind_its_last_answer(asked: bytes) -> None:
    async with serving() as s:
        client = await s.client()
        assert await answered(client, asked)
        s.trust(OTHER)

        async def is_last() -> bool:
            return not await answered(client, asked)

        await eventually(is_last, "each request is answered, and the last answer says that it is")
        assert await client.is_closed()
        client.close()


async def test_connection_by_a_certificate_of_another_trusted_ca_stays() -> None:
    async with serving() as s:
        s.trust(OURS, OTHER)
        ours, other = await s.client(), await s.client(OTHER)
        for client in (ours, other):
            assert await answered(client, CHANGES_NOTHING)
        s.trust(OTHER)
        assert await ours.is_closed()
        assert await answered(other, CHANGES_NOTHING)
        ours.close()
        other.close()


async def test_connection_ends_with_the_certificate() -> None:
    async with serving() as s:
        client = await s.client(ends=datetime.now(UTC) + timedelta(seconds=2))
        assert await answered(client, CHANGES_NOTHING)
        assert await client.is_closed()
        client.close()


@pytest.mark.parametrize("how", ["stream=true", "wait_ms=60000"])
async def test_log_is_read_no_further_on_a_connection_whose_ca_is_retired(how: str) -> None:
    """A stream ends, and a poll that waits is answered as if nothing had come."""
    async with serving() as s:
        shown, end = client_context([OURS], issued(OURS, "somebody")), s.on.quorum.committed
        feed = f"{s.on.members[1].url}/v1/metadata/batches?offset={end}&epoch=1&{how}"
        asking = asyncio.create_task(s.on.session.get(feed, ssl=shown))
        server = s.on.members[1]._server
        assert server is not None

        async def is_leaving() -> bool:
            return any(one.is_leaving for one in server._lane.gate.handed_over)

        async def is_asked() -> bool:
            return s.on.members[1].node.feed.followers == 1

        await eventually(is_asked, "the log is read")
        s.trust(OTHER)
        await eventually(is_leaving, "the connection is to go")
        await s.on.register(1, 11)
        async with await asking as answer:
            assert (answer.status, await answer.content.read()) == (200, b"")
