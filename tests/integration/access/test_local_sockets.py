"""The HTTP API over a Unix socket: whoever asks is a user of this machine, as the kernel says, and bound as all are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NotSent
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.http.serving import HttpServer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.bearer_tokens import BearerTokens
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.uids import UidIdentities
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_parts import AccessParts
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterQuotaOp,
    QuotaEntityPart,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.default_parts import node_limits
from tests.integration.http_stage import CLUSTER_ID, Stage, stage
from tests.waiting import PATIENCE_S

OWN = f"User:uid-{os.geteuid()}"
SECRET = b"s" * 32


class NoTokens:
    """Nobody has one."""

    generation = 0
    find = BearerTokens({}).find


def access_of(node_id: int, named: Mapping[int, str]) -> AccessParts:
    seals = Seals(lambda: (SECRET,), node_id, frozenset({1, 2}), lambda: 0.0)
    uids = UidIdentities(os.geteuid(), named)
    certificates = CertificateIdentities(CLUSTER_ID, PrincipalMapping())
    authentication = IdentityAuthentication(NoTokens(), certificates, seals, frozenset(), uids)
    return AccessParts(authentication, Authorizer(), frozenset(), seals, uids=uids)


@asynccontextmanager
async def with_sockets(
    directory: Path, named: Mapping[int, str] | None = None
) -> AsyncIterator[tuple[Stage, Sequence[str]]]:
    """Controllers 1, which is active, and 2, each at a socket too; nobody has a token or a certificate."""
    async with stage(2, access=lambda node_id: access_of(node_id, named or {})) as s:
        paths = [directory / f"{node_id}.sock" for node_id in s.members]
        servers = [
            await HttpServer.start(member.node, "127.0.0.1", 0, 1.0, wants_certificates=True, local=path)
            for member, path in zip(s.members.values(), paths, strict=True)
        ]
        try:
            yield s, [f"unix:{path}" for path in paths]
        finally:
            for server in servers:
                await server.close()
            assert not any(path.exists() for path in paths)


def limit_of(user: str) -> AlterClientQuotasRequest:
    entity = [QuotaEntityPart(entity_type="user", entity_name=user)]
    ops = [AlterQuotaOp(key="producer_byte_rate", value=1.0)]
    return AlterClientQuotasRequest(entries=[AlterClientQuotasEntry(entity=entity, ops=ops)])


async def is_refused(client: ControllerClient) -> bool:
    """Whether a change is; it is made where it is not."""
    try:
        reply = await client.access.alter_client_quotas(limit_of("ana"))
    except ApiError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return True
    assert reply.entries[0].error_code == 0
    return False


@pytest.mark.parametrize("asked", [0, 1], ids=["active", "standby"])
async def test_user_that_runs_the_controllers_may_do_everything_at_a_socket_and_is_written_down(
    tmp_path: Path, asked: int
) -> None:
    async with with_sockets(tmp_path) as (s, urls):
        written: list[DecidedWrite] = []
        s.members[1].controller.on_decided = written.append
        async with ControllerClient([urls[asked]]) as client:
            # The first comes in the usual form, on a connection of its own; whoever reads is the framework's.
            assert not await is_refused(client)
            assert (await client.status()).quorum.active_id == 1
            assert not await is_refused(client)
        assert [(one.origin.principal, one.origin.address) for one in written if one.origin is not None] == [
            (OWN, "127.0.0.1")
        ] * 2
        async with ControllerClient(s.urls) as nobody:
            assert await is_refused(nobody)


async def test_usual_requests_at_a_socket_take_the_short_way(tmp_path: Path) -> None:
    body = b'{"entries":[{"entity":[{"entity_type":"user","entity_name":"ana"}],"ops":[]}]}'
    head = "POST /v1/client-quotas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    async with stage(1, access=lambda node_id: access_of(node_id, {})) as s:
        server = await HttpServer.start(s.members[1].node, "127.0.0.1", 0, 1.0, local=tmp_path / "one.sock")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "one.sock")
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (len(server._lane.connections), len(server._lane.gate.handed_over)) == (1, 0)
        writer.close()
        await server.close()


async def test_user_whom_settings_name_has_the_rights_of_that_principal(tmp_path: Path) -> None:
    async with (
        with_sockets(tmp_path, {os.geteuid(): "User:ana"}) as (_, urls),
        ControllerClient([urls[0]]) as client,
    ):
        assert await is_refused(client)
        with pytest.raises(ApiError, match="User:ana needs DESCRIBE on the cluster"):
            await client.status()


async def test_connections_at_a_socket_have_no_more_places_than_others(tmp_path: Path) -> None:
    async with with_sockets(tmp_path) as (s, urls):
        path = urls[0].removeprefix("unix:")
        most = s.members[1].node.limits.connections_max // 4
        opened = [await asyncio.open_unix_connection(path) for _ in range(most + 1)]
        # The longest silent one gives up its place.
        assert b"429" in await asyncio.wait_for(opened[0][0].readline(), PATIENCE_S)
        for _, writer in opened:
            writer.close()


async def test_whoever_has_all_connections_of_this_machine_has_none_of_its_socket(tmp_path: Path) -> None:
    limits = node_limits(connections_per_address_max=1)
    async with stage(1, limits=limits, access=lambda node_id: access_of(node_id, {})) as s:
        path = tmp_path / "1.sock"
        server = await HttpServer.start(s.members[1].node, "127.0.0.1", 0, 1.0, local=path)
        _, only = await asyncio.open_connection("127.0.0.1", server.port)
        refused, beyond = await asyncio.open_connection("127.0.0.1", server.port)
        assert b"429" in await refused.readline()
        async with ControllerClient([f"unix:{path}"]) as client:
            assert (await client.status()).quorum.observed_by == 1
        only.close()
        beyond.close()
        await server.close()


async def test_client_asks_through_a_socket_what_is_named_by_url_and_says_which_is_not_there(tmp_path: Path) -> None:
    async with with_sockets(tmp_path) as (s, urls):
        sockets = {s.urls[0]: urls[0].removeprefix("unix:")}
        async with ControllerClient([s.urls[0]], sockets=sockets) as client:
            assert (await client.status_of(s.urls[0], 5_000)).quorum.observed_by == 1
            with pytest.raises(NotSent, match=r"unix:.*none\.sock cannot be reached: no such file"):
                await client.status_of(f"unix:{tmp_path}/none.sock", 5_000)


async def test_page_of_a_browser_gets_nothing_at_a_socket_either(tmp_path: Path) -> None:
    async with with_sockets(tmp_path) as (_, urls):
        connector = aiohttp.UnixConnector(urls[0].removeprefix("unix:"))
        async with aiohttp.ClientSession(connector=connector) as session:
            sent = {"Origin": "https://elsewhere.example"}
            async with session.get("http://localhost/v1/status", headers=sent) as answer:
                assert answer.status == 403
