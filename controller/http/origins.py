"""The origin of a request, from its headers and its connection."""

from __future__ import annotations

import ipaddress

from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.decisions.origin import ANONYMOUS, Origin, check_principal
from quorate.metadata_log.errors import ApiError

#: An IPv6 address that ends in an IPv4 address.
_ADDRESS_CHARS_MAX = 45


def origin_of(request: web.Request, hops: int, request_id: str) -> Origin:
    """The origin of a request. A standby that passes one on names its client.

    Raises:
        HttpRefusal: 400, a header that is not in its form.
    """
    try:
        principal = check_principal(request.headers.get(headers.PRINCIPAL, ANONYMOUS))
    except ApiError as error:
        raise HttpRefusal(400, f"header {headers.PRINCIPAL}: {error.message}") from None
    address = request.remote or ""
    if hops:
        address = _checked_address(request.headers.get(headers.CLIENT, address))
    return Origin(principal, address, request_id)


def _checked_address(text: str) -> str:
    try:
        if len(text) > _ADDRESS_CHARS_MAX:
            raise ValueError
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise HttpRefusal(400, f"header {headers.CLIENT} must be an IP address, not {text[:20]!r}") from None
