"""Hosts that are this machine: what is sent to them no network carries, and nobody else reaches what listens there."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host is this machine for sure: a loopback address, or ``localhost``. No other name is looked up."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
