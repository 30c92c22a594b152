"""Loopback ports: are they free, and which ones are."""

from __future__ import annotations

import socket
from typing import Final

from metadata_log.errors import QuorateError

LOOPBACK: Final = "127.0.0.1"


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


def free_ports(count: int) -> list[int]:
    """Ports that are free at this moment, all different."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
