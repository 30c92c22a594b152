"""Word to whoever started this process as a service: systemd, or what speaks its protocol (sd_notify(3))."""

from __future__ import annotations

import os
import socket
from typing import Final, Literal

#: A path, or a name in the abstract namespace behind an ``@``; unset where nobody wants to know.
SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"


def is_service() -> bool:
    """Whether somebody wants to know."""
    return bool(os.environ.get(SOCKET_VARIABLE))


def tell_service_manager(state: Literal["READY=1", "STOPPING=1"]) -> None:
    """Say that the service is ready, or that it stops. Where nobody listens nothing happens: none fails for it."""
    address = os.environ.get(SOCKET_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.settimeout(1.0)
            to.sendto(state.encode("ascii"), address)
    except (OSError, ValueError):
        return
