"""One shared secret takes the place of another: the node that is dialled asks for those that are believed just now."""

from __future__ import annotations

import pytest

from quorate.quorum.transport.frames import framed
from quorate.quorum.transport.handshake import proof
from quorate.quorum.transport.transport import PeerTransport
from quorate.scripts.cluster.ports import free_ports
from tests.integration.quorum.transport_stage import Node, config
from tests.integration.quorum_stranger import Stranger
from tests.waiting import eventually

OLD, NEW = b"old", b"new"


async def answer_to(known: PeerTransport, shown: bytes) -> bytes | None:
    """What node 1 proves to a peer that dials and proves this secret; None: nothing, the connection is closed."""
    stranger = await Stranger.at(known.port)
    own, theirs = await stranger.say_hello(known.config)
    stranger.writer.write(framed(proof(shown, own, theirs)))
    try:
        answer = await stranger.frame()
    except AssertionError:  # closed
        return None
    finally:
        stranger.writer.close()
    return next(secret for secret in (OLD, NEW) if proof(secret, theirs, own) == answer)


async def test_whoever_dials_is_answered_with_the_secret_that_he_showed_while_it_is_believed() -> None:
    believed: tuple[bytes, ...] = (OLD,)
    known = config(1, dict(zip((1, 2), free_ports(2), strict=True)))
    transport = PeerTransport(known, Node(), lambda: believed)
    await transport.start()
    try:
        for believed, to_old, to_new in (
            ((OLD,), OLD, None),
            ((OLD, NEW), OLD, NEW),
            ((NEW, OLD), OLD, NEW),
            ((NEW,), None, NEW),
        ):
            assert (await answer_to(transport, OLD), await answer_to(transport, NEW)) == (to_old, to_new), believed
    finally:
        await transport.close()


@pytest.mark.parametrize(
    ("low", "high", "do_meet"),
    [
        ((OLD,), (OLD, NEW), True),
        ((NEW, OLD), (OLD, NEW), True),
        ((OLD, NEW), (NEW, OLD), True),
        ((NEW,), (NEW, OLD), True),
        ((OLD,), (NEW, OLD), False),
        ((NEW,), (OLD, NEW), False),
    ],
)
async def test_two_nodes_meet_in_each_step_of_an_exchange(
    low: tuple[bytes, ...], high: tuple[bytes, ...], *, do_meet: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Node 2 dials, and shows its first; by a step too many there is nobody who believes it."""
    ports = dict(zip((1, 2), free_ports(2), strict=True))
    nodes = Node(), Node()
    pair = (
        PeerTransport(config(1, ports), nodes[0], lambda: low),
        PeerTransport(config(2, ports), nodes[1], lambda: high),
    )

    async def have_met_or_not() -> bool:
        return all(node.events for node in nodes) or "the shared secret differs" in caplog.text

    try:
        for transport in pair:
            await transport.start()
        await eventually(have_met_or_not, "one has judged the other")
        assert all(node.events for node in nodes) is do_meet
    finally:
        for transport in pair:
            await transport.close()
