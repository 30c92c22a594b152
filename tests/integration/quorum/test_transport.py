"""Connections between nodes over real sockets, with a proxy between them that swallows, and peers that misbehave."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import uvloop

from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.addresses import PeerHost
from quorate.quorum.transport.connection import HANDSHAKE_TIMEOUT, PeerConnection
from quorate.quorum.transport.dialling import keep_connected
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, framed
from quorate.quorum.transport.handshake import decode_hello
from quorate.quorum.transport.silence import SilenceWatch
from quorate.quorum.transport.transport import UNPROVED_MAX, PeerTransport
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.terminal import exit_codes
from tests.default_parts import quorum_limits, quorum_timing
from tests.integration import commands
from tests.integration.forgetful_link import HOST, ForgetfulLink
from tests.integration.quorum.transport_stage import Node, config
from tests.integration.quorum_stranger import SECRET, Stranger
from tests.waiting import eventually, within

TIMING = quorum_timing()


@dataclass
class Pair:
    """Node 2 dials node 1, through a proxy."""

    low: Node
    high: Node
    transports: dict[int, PeerTransport]
    proxy: ForgetfulLink

    async def stand(self, times: int) -> None:
        """Wait until the consensus connection stands, for the n-th time on both sides."""

        def stands(node: Node) -> bool:
            return len(node.events) >= 2 * times - 1 and node.events[-1][0] == "connected"

        await eventually(_is(lambda: stands(self.low) and stands(self.high)), f"connection {times} stands")


@asynccontextmanager
async def alone(http_url: str = "", **limits: int) -> AsyncIterator[tuple[Node, PeerTransport]]:
    """Node 1, which is dialled by nobody but strangers."""
    node = Node()
    known = replace(config(1, dict(zip((1, 2), free_ports(2), strict=True)), **limits), http_url=http_url)
    transport = PeerTransport(known, node, lambda: (SECRET,))
    await transport.start()
    try:
        yield node, transport
    finally:
        await transport.close()


@asynccontextmanager
async def pair(newest_version: int = NEWEST_VERSION) -> AsyncIterator[Pair]:
    """Connected. ``newest_version``: that the second one speaks."""
    ports = free_ports(2)
    proxy = ForgetfulLink(ports[0])
    through = await proxy.start()
    low, high = Node(), Node()
    transports = {
        1: PeerTransport(config(1, {1: ports[0], 2: ports[1]}), low, lambda: (SECRET,)),
        2: PeerTransport(
            replace(config(2, {1: through, 2: ports[1]}), newest_version=newest_version), high, lambda: (SECRET,)
        ),
    }
    made = Pair(low, high, transports, proxy)
    try:
        for transport in transports.values():
            await transport.start()
        await made.stand(1)
        yield made
    finally:
        for transport in transports.values():
            await transport.close()
        await proxy.close()


@pytest.mark.parametrize("newest", [OLDEST_VERSION, NEWEST_VERSION])
async def test_both_ends_know_the_version_that_they_speak(newest: int) -> None:
    async with pair(newest) as both:
        assert both.low.versions == both.high.versions == [newest]


async def test_who_speaks_no_version_of_this_node_is_told_which_it_knows(caplog: pytest.LogCaptureFixture) -> None:
    """Each can say in its log what differs: whoever is dialled, and whoever dials."""
    async with alone() as (node, transport):
        knock = await Stranger.at(transport.port)
        with caplog.at_level(logging.WARNING):
            _, theirs = await knock.say_hello(transport.config, oldest_version=NEWEST_VERSION + 1)
            await knock.closed()

        told = decode_hello(theirs)
        assert (told.oldest_version, told.newest_version) == (OLDEST_VERSION, NEWEST_VERSION)
        assert not knock.was_told_more, "no proof"
        assert not node.events
        (line,) = caplog.messages
        assert f"node 2 speaks versions {NEWEST_VERSION + 1} to {NEWEST_VERSION + 1}, this node" in line


async def test_idle_connection_stays_and_hands_no_ping_over() -> None:
    """Nobody sends anything for longer than a dead connection is left standing."""
    async with pair() as both:
        end = time.monotonic() + 2 * TIMING.silence_max
        await eventually(_is(lambda: time.monotonic() >= end), "time passes")

        assert both.low.events == [("connected", 2)]
        assert both.high.events == [("connected", 1)]
        assert not both.low.messages
        assert not both.high.messages


@pytest.mark.parametrize("swallowed", [{"out", "back"}, {"out"}, {"back"}])
async def test_connection_that_swallows_is_closed_and_dialled_again(swallowed: set[str]) -> None:
    """Both directions as behind a firewall that forgot it, or one of them alone: no end is told by the network."""
    async with pair() as both:
        both.proxy.swallow(*swallowed)
        begun = time.monotonic()

        await both.stand(2)

        assert time.monotonic() - begun > TIMING.silence_max / 2
        assert both.low.events == [("connected", 2), ("disconnected", 2), ("connected", 2)]
        both.transports[2].send(1, Channel.CONSENSUS, b"again")
        both.transports[2].send(1, Channel.BULK, b"in bulk")

        await eventually(
            _is(lambda: sorted(both.low.messages) == [b"again", b"in bulk"]), "both channels carry messages again"
        )


async def test_peer_that_is_stopped_costs_nothing_once_it_is_silent() -> None:
    """Its kernel takes bytes and acknowledges them. What is sent to it later waits for nobody."""
    async with alone() as (node, transport):
        peer = await Stranger.at(transport.port)
        await peer.prove(transport.config)
        await eventually(_is(lambda: node.events == [("connected", 2)]), "the peer is connected")
        await eventually(_is(lambda: (transport.silence(2) or 0) > TIMING.silence_max / 2), "its silence is counted")

        await eventually(_is(lambda: node.events[-1] == ("disconnected", 2)), "it is given up", 2 * TIMING.silence_max)

        assert transport.silence(2) is None
        transport.send(2, Channel.CONSENSUS, bytes(1024 * 1024))
        await peer.closed()


async def test_connection_with_too_much_to_send_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    """The peer's process is there, and takes nothing: memory is bounded, whether its silence is noticed or not."""
    bound = quorum_limits().inflight_bytes + 2 * BATCH_BYTES_MAX
    async with alone(write_buffer_bytes=bound) as (node, transport):
        peer = await Stranger.at(transport.port)
        await peer.prove(transport.config)
        await eventually(_is(lambda: node.events == [("connected", 2)]), "the peer is connected")
        sent = 0
        while ("disconnected", 2) not in node.events:
            transport.send(2, Channel.CONSENSUS, bytes(1024 * 1024))
            sent += 1024 * 1024
            assert sent < 2 * bound, "nothing bounds what waits to be sent"
            await asyncio.sleep(0)

        assert sent >= bound
        assert re.search(r"connection to node 2 closed: \d+ bytes wait to be sent", caplog.text), caplog.text
        await peer.closed()


@pytest.mark.parametrize("error", [ProtocolError("wrong"), KeyError("unthought of"), RecursionError()])
async def test_frame_that_raises_ends_its_connection_and_no_other(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair() as both:

        def refuse(payload: bytes) -> None:
            raise error

        both.low.on_message = refuse
        with caplog.at_level(logging.WARNING):
            both.transports[2].send(1, Channel.BULK, b"wrong")
            await eventually(_is(lambda: "connection to node 2 closed" in caplog.text), "a sentence says why")
        both.low.on_message = lambda payload: None

        await eventually(_is(lambda: both.proxy.made == 3), "the channel is dialled again")
        assert both.low.events == [("connected", 2)], "the consensus connection was left alone"


async def test_peer_that_is_refused_at_once_is_not_dialled_in_a_tight_loop() -> None:
    async with pair() as both:

        def refuse(payload: bytes) -> None:
            raise ProtocolError("wrong")

        both.high.on_message = refuse
        made, begun = both.proxy.made, time.monotonic()
        while time.monotonic() < begun + 1:
            both.transports[1].send(2, Channel.BULK, b"wrong")
            await asyncio.sleep(0)

        assert 2 <= both.proxy.made - made < 20


async def test_oldest_connection_without_proof_makes_room_for_another() -> None:
    """However many come and say nothing, their number is bounded, and who proves itself gets through."""
    async with alone() as (node, transport):
        silent = [await Stranger.at(transport.port) for _ in range(UNPROVED_MAX + 5)]
        peer = await Stranger.at(transport.port)
        with within(HANDSHAKE_TIMEOUT / 2, "they are given up for saying nothing"):
            for stranger in silent[:5]:
                await stranger.closed()
            await peer.prove(transport.config)
        await eventually(_is(lambda: node.events == [("connected", 2)]), "the peer is connected")
        for stranger in [*silent[5:], peer]:
            stranger.writer.close()


async def test_many_who_knock_with_garbage_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with alone() as (_, transport):
        with caplog.at_level(logging.WARNING):
            for number in range(50):
                knock = await Stranger.at(transport.port)
                knock.writer.write(framed(b"garbage %d" % number))
                await knock.closed()

        assert [message[:42] for message in caplog.messages] == ["connection to an unknown peer at 127.0.0.1"]


async def test_who_proves_nothing_is_given_no_proof() -> None:
    """A secret that somebody chose badly could be guessed by it, on another machine."""
    async with alone() as (node, transport):
        knock = await Stranger.at(transport.port)
        await knock.say_hello(transport.config)
        knock.writer.write(framed(bytes(32)))
        await knock.closed()

        assert not knock.was_told_more, "after its hello nothing that the secret has to do with"
        assert not node.events


def test_older_generation_is_given_the_proof_that_it_is_superseded() -> None:
    """Though it is refused: by nothing else would it believe it, and end. On the loop of processes, which sends later
    what it is told to send.
    """

    async def refused() -> None:
        async with alone() as (node, transport):
            peer = await Stranger.at(transport.port)
            transport.config = replace(transport.config, generation=2000)
            await peer.prove(replace(transport.config, generation=0))
            await peer.closed()

            assert not node.events

    uvloop.run(refused())


@pytest.mark.parametrize("body_bytes", [0, 100_000])
async def test_request_of_http_is_answered_with_a_sentence_whatever_else_is_sent(body_bytes: int) -> None:
    async with alone() as (node, transport):
        reader, writer = await asyncio.open_connection(HOST, transport.port)
        writer.write(b"POST /v1/topics HTTP/1.1\r\nHost: here\r\n\r\n" + bytes(body_bytes))

        with within(HANDSHAKE_TIMEOUT / 2, "it was waited for what else it says"):
            answer = (await reader.read()).decode()

        assert answer.startswith("HTTP/1.1 400 Bad Request\r\n")
        assert answer.endswith("\r\n\r\nthis is the quorum port of controller 1, for controllers only\n")
        assert not node.events
        writer.close()


async def test_command_that_is_sent_to_the_quorum_port_says_so_at_once() -> None:
    async with alone(http_url="http://127.0.0.1:18081") as (_, transport):
        with within(HANDSHAKE_TIMEOUT, "it was waited for"):
            ended = await commands.alone("topics", "list", "--controllers", f"{HOST}:{transport.port}")

    assert ended.code == exit_codes.UNREACHABLE
    assert "this is the quorum port of controller 1, for controllers only; its HTTP API is at" in ended.said
    assert "http://127.0.0.1:18081)" in ended.said


async def test_requests_of_http_that_hang_on_are_bounded_as_others_that_prove_nothing() -> None:
    """In number; and in time: whoever has its answer and stays is closed as one that says no hello."""
    async with alone() as (_, transport):
        first, *others = [await Stranger.at(transport.port) for _ in range(UNPROVED_MAX + 1)]
        for other in (first, *others):
            other.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with within(HANDSHAKE_TIMEOUT / 2, "it is given up for saying nothing"):
            await first.closed()
        for other in others:
            await other.closed()
        await eventually(_is(lambda: not transport._open), "nothing is left of them")


async def test_length_that_is_too_high_and_allowed_does_not_swallow_the_peer_for_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with alone() as (node, transport):
        peer = await Stranger.at(transport.port)
        await peer.prove(transport.config)
        await eventually(_is(lambda: node.events == [("connected", 2)]), "the peer is connected")
        peer.writer.write(struct.pack(">I", FRAME_BYTES_MAX))

        async def is_given_up() -> bool:
            peer.writer.write(framed(b"heard?"))
            return node.events[-1] == ("disconnected", 2)

        with caplog.at_level(logging.WARNING):
            await eventually(is_given_up, "it is given up")
        assert not node.messages
        assert " bytes of one frame in " in caplog.text
        await peer.closed()


async def test_length_above_the_largest_batch_closes_the_connection() -> None:
    async with alone() as (node, transport):
        peer = await Stranger.at(transport.port)
        await peer.prove(transport.config)
        peer.writer.write(framed(bytes(BATCH_BYTES_MAX)))
        await eventually(_is(lambda: bool(node.messages)), "a frame as large as the largest batch is read")
        peer.writer.write(struct.pack(">I", 2 * BATCH_BYTES_MAX))
        with within(TIMING.silence_max / 2, "it is closed for its silence"):
            await peer.closed()


async def test_host_that_answers_nothing_holds_an_attempt_up_for_a_bounded_time() -> None:
    """A full queue of connections swallows a SYN, as a host that vanished does; then the network is back."""
    with socket.socket() as full:
        full.bind((HOST, 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(2)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex((HOST, port))
        attempts: list[float] = []

        class Resolved(PeerHost):
            async def current(self) -> str:
                attempts.append(time.monotonic())
                return await super().current()

        dialling = asyncio.create_task(keep_connected(Resolved(HOST), port, _unused, 0.2))
        await eventually(_is(lambda: len(attempts) >= 3), "the host is dialled again and again")
        dialling.cancel()
        await asyncio.gather(dialling, return_exceptions=True)
        for filler in fillers:
            filler.close()

        assert attempts[2] - attempts[1] < 0.2 + 0.25 + 1.0


@pytest.mark.parametrize("part", ["current", "look"])
async def test_keeper_of_connections_that_fails_is_told_to_its_owner(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Nobody would dial that peer again, or notice that a connection is dead."""

    def fail(*_: object) -> None:
        raise KeyError("nobody thought of it")

    monkeypatch.setattr(*((PeerHost, "current", fail) if part == "current" else (SilenceWatch, "look", fail)))
    node = Node()
    transport = PeerTransport(config(2, dict(zip((1, 2), free_ports(2), strict=True))), node, lambda: (SECRET,))
    await transport.start()
    try:
        await eventually(_is(lambda: bool(node.errors)), "the owner is told")
    finally:
        await transport.close()

    assert [type(error) for error in node.errors][:1] == [KeyError]


def _unused() -> PeerConnection:
    raise AssertionError("nothing answers there")


def _is(look: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def looked() -> bool:
        return look()

    return looked
