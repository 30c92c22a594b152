"""Who sends a node much that takes it long, as a leader in a mass change, leaves the loop turns for others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import uvloop

from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.transport import PeerTransport
from quorate.scripts.cluster.ports import free_ports
from tests.integration.quorum.transport_stage import Node, config
from tests.integration.quorum_stranger import SECRET
from tests.waiting import eventually

#: More than is read from a socket at once.
MESSAGE_BYTES = 300_000
MESSAGES = 12
#: Longer than what came may take of a turn, a third of it or so, and shorter.
LONG_S, MIDDLE_S, SHORT_S = 0.006, 0.002, 0.0


def messages_per_turn(work_s: float) -> Counter[int]:
    """How many messages node 1 was handed in each turn of its loop that handed it any, if each keeps it for so long."""
    handed: Counter[int] = Counter()

    async def story() -> None:
        ports = dict(zip((1, 2), free_ports(2), strict=True))
        low, high = Node(), Node()
        transports = [
            PeerTransport(config(number, ports), node, lambda: (SECRET,)) for number, node in ((1, low), (2, high))
        ]
        loop, turn = asyncio.get_running_loop(), 0

        def count_turns() -> None:
            nonlocal turn
            turn += 1
            loop.call_soon(count_turns)

        def work(payload: bytes) -> None:
            handed[turn] += 1
            ends_at = time.monotonic() + work_s
            while time.monotonic() < ends_at:
                pass

        async def stands() -> bool:
            return bool(low.versions and high.versions)

        async def has_all() -> bool:
            return len(low.messages) == MESSAGES

        low.on_message = work
        try:
            for transport in transports:
                await transport.start()
            await eventually(stands, "the connection stands")
            count_turns()
            for number in range(MESSAGES):
                transports[1].send(1, Channel.CONSENSUS, bytes([number]) * MESSAGE_BYTES)
            await eventually(has_all, "all messages came")
            assert low.messages == [bytes([number]) * MESSAGE_BYTES for number in range(MESSAGES)]
            assert (low.errors, high.errors) == ([], [])
        finally:
            for transport in transports:
                await transport.close()

    uvloop.run(story())
    return handed


def test_one_message_a_turn_where_each_takes_long() -> None:
    handed = messages_per_turn(LONG_S)
    assert max(handed.values()) == 1, handed


def test_few_messages_a_turn_where_each_takes_some_of_what_all_may_take() -> None:
    handed = messages_per_turn(MIDDLE_S)
    assert max(handed.values()) <= 3, handed


def test_several_messages_a_turn_where_they_take_no_time() -> None:
    handed = messages_per_turn(SHORT_S)
    assert max(handed.values()) > 3, "else the other tests cannot fail"
