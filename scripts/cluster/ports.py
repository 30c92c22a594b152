"""Loopback ports: are they free, and which ones are."""

from __future__ import annotations

import random
import socket
from typing import Final

from metadata_log.errors import QuorateError

LOOPBACK: Final = "127.0.0.1"
#: Looks for a stretch of free ports, each from another random start.
_STRETCH_ATTEMPTS: Final = 50
#: Below the ports that Linux gives to outgoing connections, of which some are always taken.
_STRETCH_STARTS: Final = (10_000, 30_000)


class PortTaken(QuorateError):
    """Somebody listens there already."""


def require_free(port: int, what: str) -> None:
    """Raise ``PortTaken`` if nothing could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PortTaken(
                f"port {port} ({what}) cannot be used: {error.strerror}; another cluster running?"
            ) from error


#: Bound for as long as this process lives, so that the kernel gives none of these ports away, also not to an outgoing
#: connection. Whoever listens with SO_REUSEADDR, as our servers do, can bind them nevertheless: these never listen.
_held: Final[list[socket.socket]] = []


def free_ports(count: int) -> list[int]:
    """Ports that are free, all different, and stay free for the servers that this process starts."""
    return [_hold(0) for _ in range(count)]


def free_stretch(count: int) -> int:
    """The first of so many consecutive ports that are free and stay so, as those of ``free_ports``.

    Raises:
        PortTaken: none found.
    """
    for _ in range(_STRETCH_ATTEMPTS):
        first = random.randrange(*_STRETCH_STARTS)
        try:
            for port in range(first, first + count):
                _hold(port)
        except OSError:
            continue
        return first
    raise PortTaken(f"no {count} consecutive ports are free")


def _hold(port: int) -> int:
    """Bind a port, 0 for any that is free, and keep it; its number."""
    holder = socket.socket()
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((LOOPBACK, port))
    except OSError:
        holder.close()
        raise
    _held.append(holder)
    taken: int = holder.getsockname()[1]
    return taken
