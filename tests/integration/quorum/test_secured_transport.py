"""Connections between voters over TLS and real sockets: who is let in, who is not, and what the log says of it."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.process.quorum_parts import controllers_of, quorum_tls
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.tls import QuorumTls
from quorate.quorum.transport.transport import PeerTransport
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair
from quorate.scripts.cluster.ports import free_ports
from tests.integration.forgetful_link import HOST, ForgetfulLink
from tests.integration.made_certificates import authority, issued, written
from tests.integration.quorum.transport_stage import Node, config
from tests.integration.quorum_stranger import SECRET
from tests.waiting import eventually

OURS, FOREIGN = authority(), authority("foreign")


def uri(role: str, node_id: int, cluster: str = "c") -> str:
    return f"quorate://{cluster}/{role}/{node_id}"


def secured(paths: TlsPaths) -> QuorumTls:
    """As a controller with these files has it."""
    made = quorum_tls(TlsFiles(paths, is_server=True), "c")
    assert made is not None
    return made


def unchecked(paths: TlsPaths) -> QuorumTls:
    """As somebody has it who does not look at his own certificate before he shows it."""
    contexts = []
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(protocol)
        assert paths.cert_file is not None
        context.load_cert_chain(paths.cert_file, paths.key_file)
        context.load_verify_locations(cadata=OURS.pair.certificate.decode())
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        contexts.append(context)
    server, client = contexts
    return QuorumTls(lambda: server, lambda: client, controllers_of("c"))


def named(issuer: CertificateAuthority, *uris: str, is_expired: bool = False) -> KeyPair:
    return issued(issuer, HOST, uris=uris, is_expired=is_expired)


def good(directory: Path, node_id: int) -> QuorumTls:
    return secured(written(directory / f"good-{node_id}", named(OURS, uri("controller", node_id)), OURS))


@dataclass
class Two:
    """Node 2 dials node 1, over a link."""

    nodes: dict[int, Node]
    transports: dict[int, PeerTransport]
    link: ForgetfulLink


@asynccontextmanager
async def two(low: QuorumTls | None, high: QuorumTls | None) -> AsyncIterator[Two]:
    """Two nodes that try to connect, each with what it is given."""
    ports = free_ports(2)
    link = ForgetfulLink(ports[0])
    through = await link.start()
    nodes = {1: Node(), 2: Node()}
    transports = {
        1: PeerTransport(config(1, {1: ports[0], 2: ports[1]}), nodes[1], lambda: (SECRET,), low),
        2: PeerTransport(config(2, {1: through, 2: ports[1]}), nodes[2], lambda: (SECRET,), high),
    }
    try:
        for transport in transports.values():
            await transport.start()
        yield Two(nodes, transports, link)
    finally:
        for transport in transports.values():
            await transport.close()
        await link.close()


def _is(look: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def looked() -> bool:
        return look()

    return looked


async def stand(both: Two, times: int = 1) -> None:
    await eventually(
        _is(lambda: all(node.events.count(("connected", 3 - own)) >= times for own, node in both.nodes.items())),
        f"connection {times} stands",
    )


async def test_what_is_said_arrives_whole_and_cannot_be_read_on_the_way(tmp_path: Path) -> None:
    """The largest frame too, both ways, on either channel."""
    words = b"read me if you can " * (BATCH_BYTES_MAX // 19)
    async with two(good(tmp_path, 1), good(tmp_path, 2)) as both:
        await stand(both)
        both.link.keep = seen = bytearray()
        both.transports[2].send(1, Channel.CONSENSUS, words)
        both.transports[1].send(2, Channel.BULK, words)
        await eventually(_is(lambda: bool(both.nodes[1].messages and both.nodes[2].messages)), "both have arrived")

        assert both.nodes[1].messages == both.nodes[2].messages == [words]
        assert len(seen) > 2 * len(words)
        assert b"read me" not in seen


@pytest.mark.parametrize("way", ["to node 1", "to node 2"])
async def test_bytes_of_somebody_between_end_their_connection_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    async with two(good(tmp_path, 1), good(tmp_path, 2)) as both:
        await stand(both)
        made = both.link.made
        with caplog.at_level(logging.WARNING):
            both.link.streams[1 if way == "to node 1" else 0].write(b"\x17\x03\x03\x00\x20" + bytes(32))
            await eventually(
                _is(lambda: "TLS failed: decryption failed or bad record mac" in caplog.text), "it is said"
            )
        await eventually(_is(lambda: both.link.made == made + 1), "the channel is dialled again, alone")
        assert not both.nodes[1].messages + both.nodes[2].messages


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("broker", "its certificate makes no voter: it is of broker/2"),
        ("user", "its certificate makes no voter: it is of no node"),
        ("another cluster", "its certificate makes no voter: this client certificate is of 'quorate://d/controller/2'"),
        ("another controller", "its certificate is that of controller 3, and not of 2"),
        ("expired", "its certificate is refused: certificate has expired"),
        ("foreign", "its certificate is refused: unable to get local issuer certificate"),
        ("self-signed", "its certificate is refused: self-signed certificate"),
    ],
)
@pytest.mark.parametrize("side", ["dialled", "dialling"])
async def test_certificate_that_makes_no_voter_is_refused_by_name_on_either_side(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, made: str, says: str, side: str
) -> None:
    """Though its holder knows the shared secret, and says that it is node 2 (or 1, where it is dialled)."""
    bad, ok = (2, 1) if side == "dialling" else (1, 2)
    says = says.replace("/2", f"/{bad}").replace("not of 2", f"not of {bad}")
    uris = {
        "broker": [uri("broker", bad)],
        "user": [],
        "another cluster": [uri("controller", bad, "d")],
        "another controller": [uri("controller", 3)],
    }.get(made, [uri("controller", bad)])
    issuer = FOREIGN if made == "foreign" else OURS
    own = FOREIGN.pair if made == "self-signed" else named(issuer, *uris, is_expired=made == "expired")
    files = written(tmp_path / "bad", own, OURS)
    tls = {bad: unchecked(files), ok: good(tmp_path, ok)}
    with caplog.at_level(logging.WARNING):
        async with two(tls[1], tls[2]) as both:
            await eventually(_is(lambda: says in caplog.text), "it is said")
            await eventually(_is(lambda: both.link.made >= 8), "it is tried again and again")

            assert not both.nodes[1].events + both.nodes[2].events
            assert caplog.text.count(says) <= 2, "once for a while, however often it comes"


@pytest.mark.parametrize("plain", [1, 2])
async def test_node_without_certificates_and_one_with_them_say_what_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, plain: int
) -> None:
    says = "it speaks TLS, and this node has no certificates" if plain == 1 else "it speaks no TLS, and this node has"
    tls = {node_id: None if node_id == plain else good(tmp_path, node_id) for node_id in (1, 2)}
    with caplog.at_level(logging.WARNING):
        async with two(tls[1], tls[2]) as both:
            await eventually(_is(lambda: says in caplog.text), "it is said")

            assert not both.nodes[1].events + both.nodes[2].events


class Loaded:
    """The files of nodes 1 and 2 as their processes have them, and the clock by which they look at them again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._now = 0.0
        self.files = {
            node_id: TlsFiles(self._written(node_id, OURS, OURS), is_server=True, clock=lambda: self._now)
            for node_id in (1, 2)
        }

    def two(self) -> AbstractAsyncContextManager[Two]:
        return two(quorum_tls(self.files[1], "c"), quorum_tls(self.files[2], "c"))

    def change(self, node_id: int, issuer: CertificateAuthority, *trusts: CertificateAuthority) -> None:
        """Give a node a certificate of this CA, and those that it trusts."""
        self._written(node_id, issuer, *trusts)
        self._now += 10

    def _written(self, node_id: int, issuer: CertificateAuthority, *trusts: CertificateAuthority) -> TlsPaths:
        return written(self._directory / str(node_id), named(issuer, uri("controller", node_id)), *trusts)


def gaps_of(node: Node) -> list[int]:
    """Is filled with the numbers of events after which a node was without its connection for a turn of the loop."""
    gaps: list[int] = []
    tell = node.disconnected

    def look() -> None:
        if node.events[-1][0] == "disconnected":
            gaps.append(len(node.events))

    def disconnected(peer: int) -> None:
        tell(peer)
        asyncio.get_running_loop().call_soon(look)

    node.disconnected = disconnected  # type: ignore[method-assign]
    return gaps


async def test_ca_and_certificates_change_and_another_connection_takes_the_place_of_each_before_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """First both trust the new CA, too; then each gets a certificate of it; then the old one is forgotten."""
    new = authority("new")
    loaded = Loaded(tmp_path)
    async with loaded.two() as both:
        await stand(both)
        gaps = gaps_of(both.nodes[1])
        for number, (issuer, trusts) in enumerate([(OURS, (OURS, new)), (new, (OURS, new)), (new, (new,))], start=2):
            loaded.change(1, issuer, *trusts)
            loaded.change(2, issuer, *trusts)
            await stand(both, number)
            await eventually(_is(lambda: both.link.made >= 2 * number), "the other channel, too")  # noqa: B023

        assert both.nodes[1].events[-1] == ("connected", 2)
        assert not gaps, "it was replaced, and never gone"
        assert [loaded.files[node_id].trouble for node_id in (1, 2)] == [None, None]
        assert not [message for message in caplog.messages if "certificate" in message]


async def test_connection_by_a_certificate_whose_ca_was_retired_is_closed_and_not_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Node 1 trusts it no more, and node 2 has no other."""
    new = authority("new")
    loaded = Loaded(tmp_path)
    async with loaded.two() as both:
        await stand(both)
        with caplog.at_level(logging.WARNING):
            loaded.change(1, new, new)
            gone = ("disconnected", 2)
            await eventually(_is(lambda: gone in both.nodes[1].events), "node 1 has closed it")
            await eventually(_is(lambda: "its certificate is refused" in caplog.text), "and takes no other")
        assert "its certificate is of a CA that is trusted no more" in caplog.text
        assert both.nodes[1].events.count(("connected", 2)) == 1


@pytest.mark.parametrize("looking", [1, 2])
async def test_connection_ends_with_the_certificate_of_the_other_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, looking: int
) -> None:
    """By the clock of the node that looks at it; whoever dials has another one in its place at once."""
    now = time.time()
    tls = {1: good(tmp_path, 1), 2: good(tmp_path, 2)}
    tls[looking] = replace(tls[looking], wall_s=lambda: now)
    async with two(tls[1], tls[2]) as both:
        await stand(both)
        made = both.link.made
        with caplog.at_level(logging.WARNING):
            now += 60 * 86_400
            await eventually(_is(lambda: both.link.made >= made + 2), "both channels are dialled anew")
            if looking == 1:
                assert "its certificate has expired since" in caplog.text


async def test_who_says_nothing_in_tls_is_bounded_as_others_that_prove_nothing(tmp_path: Path) -> None:
    """In time: half a handshake is none."""
    async with two(good(tmp_path, 1), good(tmp_path, 2)) as both:
        _, writer = await asyncio.open_connection(HOST, both.transports[1].port)
        writer.write(b"\x16\x03\x01")
        await eventually(_is(lambda: len(both.transports[1]._open) == 3), "it is there")
        await eventually(_is(lambda: len(both.transports[1]._open) == 2), "it is given up")
        writer.close()
