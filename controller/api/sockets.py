"""Sockets that learn that the other end has gone without a word: a dead host, a cut cable, a firewall that forgot.

The kernel asks whenever nothing came for a while, and ends a connection on which nothing is taken for a time. It cannot
tell a process that is stopped, for which its kernel still answers. Who waits for an answer looks after that itself
(``controller.client.attempts``, ``controller.http.forwarding``).
"""

from __future__ import annotations

import socket
from typing import Any, Final, NamedTuple


class Patience(NamedTuple):
    """Whole seconds, as the kernel counts them."""

    #: Without a word until the first question, and between two.
    ask_after: int
    #: Until a connection is given up on which nothing is taken.
    give_up_after: int


#: Towards a controller there is another one to ask: a connection in a pool is known to be dead before it is used again.
TO_A_CONTROLLER: Final = Patience(2, 5)
#: Towards a client it is only memory: as long as a follower of the feed may take nothing of a piece.
TO_A_CLIENT: Final = Patience(10, 30)


def watch(connected: socket.socket, patience: Patience) -> None:
    """Let the kernel look after a connection. Where it knows of no such setting it does by its own."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", patience.ask_after),
        ("TCP_KEEPINTVL", patience.ask_after),
        ("TCP_KEEPCNT", -(-patience.give_up_after // patience.ask_after)),
        # Over what was sent and not taken it asks nothing: that has a time of its own, in milliseconds.
        ("TCP_USER_TIMEOUT", patience.give_up_after * 1000),
    ):
        option = getattr(socket, name, None)  # Linux has them all
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def to_a_controller(address: tuple[Any, ...]) -> socket.socket:
    """``aiohttp``'s socket factory: ``address`` is an entry of ``socket.getaddrinfo``."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    watch(made, TO_A_CONTROLLER)
    return made
