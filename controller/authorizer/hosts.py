"""Addresses of clients as ACLs name them."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address


def java_host(address: str) -> str:
    """An address as Java writes it (``InetAddress.getHostAddress``), with which the host of an ACL is compared as text.

    IPv6 in eight groups without zero compression, a zone behind; IPv6 that only carries an IPv4 address as that one.
    Whatever is no IPv6 address stays as it is.
    """
    if ":" not in address:
        return address
    bare, percent, zone = address.partition("%")
    try:
        parsed = IPv6Address(bare)
    except AddressValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + zone
