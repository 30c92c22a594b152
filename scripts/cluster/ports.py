"""Loopback ports: are they free, and which ones are."""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from quorate.metadata_log.errors import QuorateError

LOOPBACK: Final = "127.0.0.1"
#: Where a stretch of free ports is looked for: below those that Linux gives to outgoing connections, of which some are
#: always taken.
_STRETCH_MIN: Final = 10_000
_STRETCH_STARTS: Final = 20_000
_STRETCH_ATTEMPTS: Final = 50
_STRETCH_STEP: Final = 1009


class PortInUse(QuorateError):
    """Somebody listens there already."""


def require_free(port: int, what: str) -> None:
    """Raise ``PortInUse`` if nothing could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PortInUse(
                f"port {port} ({what}) cannot be used: {error.strerror}; is another cluster running there?"
            ) from error


#: Sockets bound for as long as this process lives, so that the kernel gives none of their ports away, also not to an
#: outgoing connection. Whoever listens with SO_REUSEADDR, as our servers do, can bind them too: these never listen.
_held: Final = ExitStack()
atexit.register(_held.close)


def free_ports(count: int) -> list[int]:
    """Ports that are free, all different, and stay free for the servers that this process starts."""
    return [_hold(0) for _ in range(count)]


@contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """``free_ports`` for the servers of a block: nothing of them is held after it."""
    with ExitStack() as held:
        yield [_hold(0, held) for _ in range(count)]


def free_stretch(count: int) -> int:
    """The first of so many consecutive ports that are free and stay so, as those of ``free_ports``.

    Raises:
        PortInUse: none found.
    """
    for attempt in range(_STRETCH_ATTEMPTS):
        # Processes that look at the same time begin at different places.
        first = _STRETCH_MIN + (os.getpid() * count + attempt * _STRETCH_STEP) % _STRETCH_STARTS
        try:
            with ExitStack() as held:
                for port in range(first, first + count):
                    _hold(port, held)
                _held.enter_context(held.pop_all())
        except OSError:
            continue
        return first
    raise PortInUse(f"no {count} consecutive ports are free")


def _hold(port: int, held: ExitStack = _held) -> int:
    """Bind a port, 0 for any that is free, and keep it while it is ``held``; its number.

    Only then it may be shared: bound as one that may be, it would be given to all who ask for it by its number.
    """
    holder = socket.socket()
    try:
        holder.bind((LOOPBACK, port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        holder.close()
        raise
    held.enter_context(holder)
    taken: int = holder.getsockname()[1]
    return taken
