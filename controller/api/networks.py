"""Networks: what stands for an address where somebody who has one has all of them."""

from __future__ import annotations

import ipaddress
from typing import Final

#: Of an IPv6 address, the bits of the network that is given to one customer.
_NETWORK_BITS: Final = 64
#: Whoever is on this machine may ask from any of them.
_LOOPBACK: Final = ipaddress.ip_network("127.0.0.0/8")


def network_of(address: str) -> str:
    """The network of an address: of IPv6 its first 64 bits, of this machine's own all of them, else itself alone."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(_LOOPBACK if parsed in _LOOPBACK else parsed)
    if parsed.ipv4_mapped is not None:
        return network_of(str(parsed.ipv4_mapped))
    return str(ipaddress.ip_network((int(parsed), _NETWORK_BITS), strict=False))
