"""HTTP over TLS: who is not trusted is refused in the handshake, and everything else is as without it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from cryptography import x509

from quorate.controller.api.tls_entrance import Handshake, TlsEntrance, certificate_of
from quorate.controller.client.connection import Connection, NoAnswer, NotAController, NotSent, Request
from quorate.controller.client.pending_session import PendingSession
from quorate.metadata_log.errors import ApiError
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair
from tests.default_parts import node_limits
from tests.integration.http.test_express import NAMED, TOPICS, Client, in_lane, new_topics, request
from tests.integration.http_stage import Stage, stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context
from tests.waiting import eventually

OURS, FOREIGN = authority(), authority("foreign")
HOST = "127.0.0.1"
STATUS = Request("GET", "/v1/status", 10_000, {"local": "true"})
HEAD_MS = 400
#: The answer to a topic: there are no brokers to put it on.
DECIDED = 422


def spoken(server: ssl.SSLContext | None = None, client: ssl.SSLContext | None = None) -> SpokenTls:
    """By default a server with a certificate of ours, and clients that trust our CA."""
    shown = server or server_context(issued(OURS, HOST))
    trusting = client or client_context([OURS])
    return SpokenTls(lambda: shown, lambda: trusting)


def port_of(on: Stage, node_id: int = 1) -> int:
    return int(on.members[node_id].url.rpartition(":")[2])


async def ask(url: str, client: ssl.SSLContext | None) -> None:
    session = PendingSession(None, None)
    try:
        await Connection(session, url, None if client is None else (lambda: client)).send(STATUS)
    finally:
        await session.close()


async def refused(on: Stage, client: ssl.SSLContext) -> str:
    """The reason that a client is told why nothing was sent."""
    with pytest.raises(NotSent) as error:
        await ask(on.urls[0], client)
    assert not on.members[1].soft.counters().http_answers, "a request was answered"
    return str(error.value).removeprefix(f"{on.urls[0]} cannot be reached: ")


async def test_the_short_way_and_the_long_one_are_as_without_tls() -> None:
    async with stage(1, tls=spoken()) as on:
        client = await Client.open_port(port_of(on), client_context([OURS]))
        for _ in range(2):
            await client.write(request(TOPICS, new_topics("a"), NAMED))
            assert (await client.read())[0] == DECIDED
        assert in_lane(on) == 1
        await client.write(b"GET /v1/features HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert ((await client.read())[0], in_lane(on)) == (200, 0)
        client.close()


async def test_standby_passes_on_over_tls() -> None:
    async with stage(2, tls=spoken()) as on:
        status, _, fields = await on.ask(2, "POST", TOPICS, new_topics("a"))
        assert (status, fields["X-Quorate-Node"]) == (DECIDED, "1")


async def test_standby_passes_nothing_on_to_whom_it_does_not_trust() -> None:
    tls = SpokenTls(spoken().as_server, lambda: client_context([FOREIGN]))
    async with stage(2, tls=tls) as on:
        async with on.session.post(on.urls[1] + TOPICS, json=new_topics("a"), ssl=client_context([OURS])) as answer:
            message = (await answer.json())["message"]
        assert "controller 1 is active and cannot be reached: its certificate is not to be trusted" in message
        assert not on.members[1].soft.counters().http_answers


@pytest.mark.parametrize(
    ("shown", "trusted", "reason"),
    [
        (issued(OURS, "127.0.0.2"), OURS, "IP address mismatch, certificate is not valid for '127.0.0.1'."),
        (
            issued(OURS, HOST),
            FOREIGN,
            (
                "unable to get local issuer certificate; trusted are the CAs that QUORATE_CA_FILE names for commands, "
                "tls.ca_files for nodes"
            ),
        ),
        (issued(OURS, HOST, is_expired=True), OURS, "certificate has expired"),
    ],
    ids=["another name", "another CA", "expired"],
)
async def test_client_sends_nothing_to_a_server_that_it_does_not_trust(
    shown: KeyPair, trusted: CertificateAuthority, reason: str
) -> None:
    async with stage(1, tls=spoken(server_context(shown))) as on:
        said = await refused(on, client_context([trusted]))
        assert said == f"its certificate is not to be trusted: {reason}"


async def test_client_without_the_certificate_that_is_wanted_is_told_so() -> None:
    server = server_context(issued(OURS, HOST), OURS, wants=ssl.CERT_OPTIONAL)
    allowed = client_context([OURS], issued(OURS, "somebody"))
    async with stage(1, tls=SpokenTls(lambda: server, lambda: allowed, wants_certificates=True)) as on:
        with pytest.raises(ApiError, match="a client certificate is wanted here, and none was shown"):
            await ask(on.urls[0], client_context([OURS]))
        client = await Client.open_port(port_of(on), client_context([OURS]))
        await client.write(request(TOPICS, new_topics("a")))
        assert (await client.read())[0] == 401
        assert await client.is_closed()
        client.close()
        assert on.members[1].soft.counters().http_answers.keys() == {("none", 401)}
        await ask(on.urls[0], allowed)


@pytest.mark.parametrize(
    "certificate",
    [issued(FOREIGN, "somebody"), issued(OURS, "somebody", is_expired=True)],
    ids=["another CA", "expired"],
)
async def test_certificate_of_a_client_that_is_not_to_be_trusted_is_refused_in_the_handshake(
    certificate: KeyPair,
) -> None:
    server = server_context(issued(OURS, HOST), OURS, wants=ssl.CERT_OPTIONAL)
    async with stage(1, tls=spoken(server)) as on:
        with pytest.raises((NotSent, NoAnswer), match="refuses this client's certificate"):
            await ask(on.urls[0], client_context([OURS], certificate))
        assert not on.members[1].soft.counters().http_answers
        await ask(on.urls[0], client_context([OURS]))


@pytest.mark.parametrize("is_shown", [True, False])
async def test_certificate_of_a_client_is_known_where_it_may_show_one(is_shown: bool) -> None:
    server = server_context(issued(OURS, HOST), OURS, wants=ssl.CERT_OPTIONAL)
    client = client_context([OURS], issued(OURS, "somebody", common_name="ana") if is_shown else None)
    async with stage(1, tls=spoken(server, client)) as on:
        opened = await Client.open_port(port_of(on), client)
        await opened.write(request(TOPICS, new_topics("a")))
        assert (await opened.read())[0] == DECIDED
        server_side = on.members[1]._server
        assert server_side is not None
        (connection,) = server_side._lane.connections
        shown = certificate_of(connection.transport)
        assert (shown is not None) == is_shown
        if shown is not None:
            (name,) = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
            assert name.value == "ana"
        opened.close()


async def test_plain_http_is_told_to_speak_tls_and_tls_to_speak_plain_http() -> None:
    async with stage(1, tls=spoken()) as on:
        with pytest.raises(NotAController, match="TLS is spoken on this port: ask it with https://, not http://"):
            await ask(on.urls[0].replace("https", "http"), None)
    async with stage(1) as on:
        assert await refused_plain(on) == "it speaks no TLS: ask it with http://"


async def refused_plain(on: Stage) -> str:
    url = on.urls[0].replace("http", "https")
    with pytest.raises((NotSent, NoAnswer)) as error:
        await ask(url, client_context([OURS]))
    assert isinstance(error.value, NotSent)
    return str(error.value).removeprefix(f"{url} cannot be reached: ")


async def test_what_the_other_end_says_in_the_handshake_is_repeated() -> None:
    """A server of another kind, such as a proxy."""
    server = server_context(issued(OURS, HOST), OURS, wants=ssl.CERT_REQUIRED)
    listening = socket.create_server((HOST, 0))

    def refuse() -> None:
        connected, _ = listening.accept()
        # It stays open until the client has read what is said.
        stays = connected.dup()
        with stays, server.wrap_socket(connected, server_side=True, do_handshake_on_connect=False) as secured:
            with pytest.raises(ssl.SSLError):
                secured.do_handshake()
            while stays.recv(4_096):
                pass

    url = f"https://{HOST}:{listening.getsockname()[1]}"
    with listening:
        refusing = asyncio.get_running_loop().run_in_executor(None, refuse)
        with pytest.raises(NotSent, match="it refuses this client in the handshake: certificate required"):
            await ask(url, client_context([OURS]))
        await refusing


async def test_handshake_has_the_time_of_a_head() -> None:
    async with stage(1, tls=spoken(), limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        silent, begun = await Client.open_port(port_of(on)), await Client.open_port(port_of(on))
        await begun.write(b"\x16\x03\x01\x02\x00")
        assert await silent.is_closed()
        assert await begun.is_closed()
        await ask(on.urls[0], client_context([OURS]))
        for client in (silent, begun):
            client.close()


class PatientDoor:
    """Ends nothing by itself."""

    def __init__(self) -> None:
        self.waiting: set[Handshake] = set()

    def enter(self, handshake: Handshake) -> bool:
        self.waiting.add(handshake)
        return True

    def leave(self, handshake: Handshake) -> None:
        self.waiting.discard(handshake)

    def protocol(self, handshake: Handshake) -> asyncio.Protocol:
        return asyncio.Protocol()


async def test_handshake_has_its_time_where_nobody_else_ends_it() -> None:
    door = PatientDoor()
    entrance = await TlsEntrance.open(door, HOST, 0, 16, lambda: server_context(issued(OURS, HOST)), HEAD_MS / 1_000)
    try:
        silent = await Client.open_port(entrance.sockets[0].getsockname()[1])
        assert await silent.is_closed()
        silent.close()
        assert not door.waiting
    finally:
        await entrance.close()


async def test_handshakes_are_strangers_that_give_up_their_places() -> None:
    """Of 16 places strangers have 4: the fifth takes that of the first, and who asks is heard."""
    patient = node_limits(connections_max=16, head_timeout_ms=600_000)
    async with stage(1, tls=spoken(), limits=patient) as on:
        silent = [await Client.open_port(port_of(on)) for _ in range(4)]
        await ask(on.urls[0], client_context([OURS]))
        assert await silent[0].is_closed()
        places = on.members[1]._server._lane.gate.places  # type: ignore[union-attr]
        for client in silent:
            client.close()

        async def all_are_gone() -> bool:
            return not places._addresses

        await eventually(all_are_gone, "places of connections that have ended are free")


async def test_changed_certificate_is_for_new_connections() -> None:
    shown = [server_context(issued(OURS, HOST))]
    tls = SpokenTls(lambda: shown[-1], spoken().as_client)
    async with stage(1, tls=tls) as on:
        standing = await Client.open_port(port_of(on), client_context([OURS]))
        shown.append(server_context(issued(FOREIGN, HOST)))
        await ask(on.urls[0], client_context([FOREIGN]))
        assert "not to be trusted" in await refused_now(on)
        await standing.write(request(TOPICS, new_topics("a")))
        assert (await standing.read())[0] == DECIDED
        standing.close()


async def refused_now(on: Stage) -> str:
    with pytest.raises(NotSent) as error:
        await ask(on.urls[0], client_context([OURS]))
    return str(error.value)


@pytest.mark.parametrize(
    "scenario",
    [
        test_the_short_way_and_the_long_one_are_as_without_tls,
        test_standby_passes_on_over_tls,
        test_plain_http_is_told_to_speak_tls_and_tls_to_speak_plain_http,
        test_client_without_the_certificate_that_is_wanted_is_told_so,
        test_handshake_has_the_time_of_a_head,
        test_handshake_has_its_time_where_nobody_else_ends_it,
        test_handshakes_are_strangers_that_give_up_their_places,
        test_changed_certificate_is_for_new_connections,
    ],
)
def test_loop_of_the_processes_does_the_same(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Its TLS is not the code of the loop that tests and other programs run on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
