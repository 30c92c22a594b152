"""Keeps one connection to a peer: dials, waits until it has ended or another is to take its place, dials again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from quorate.quorum.transport.addresses import PeerHost
from quorate.quorum.transport.connection import PeerConnection

#: Seconds between two attempts to reach a peer: doubled from the first to the last. The last is short beside an
#: election timeout, for after an outage of the network nobody leads before somebody was reached.
_REDIAL_MIN: Final = 0.02
_REDIAL_MAX: Final = 0.25
#: A connection that stood for so long was a good one: it is dialled again at once. One that is closed as soon as it
#: stands, for what the peer says, is not dialled in a tight loop.
_STEADY_SECONDS: Final = 1.0


async def keep_connected(
    addresses: PeerHost, port: int, make: Callable[[], PeerConnection], connect_timeout: float
) -> None:
    """For ever. An attempt takes ``connect_timeout`` at most: one to a host that answers nothing would take minutes.

    A fresh one is also sooner through, once the host answers again, than the kernel's repetitions, which back off.
    """
    loop = asyncio.get_running_loop()
    pause = _REDIAL_MIN
    while True:
        begun = loop.time()
        try:
            async with asyncio.timeout(connect_timeout):
                _, connection = await loop.create_connection(make, await addresses.current(), port)
        except OSError:  # a TimeoutError is one
            addresses.failed()
        else:
            await connection.is_over.wait()
            if connection.is_established and loop.time() - begun >= _STEADY_SECONDS:
                pause = _REDIAL_MIN
                continue
        await asyncio.sleep(pause)
        pause = min(2 * pause, _REDIAL_MAX)
