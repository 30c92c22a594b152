"""Access to this node: for holders of the shared secret, or, without one, for clients on this machine."""

from __future__ import annotations

import hmac
import ipaddress
import re
from typing import Final

from quorate.controller.api.errors import HttpRefusal
from quorate.metadata_log.errors import ErrorCode

#: A `Host` header: a name or an address, perhaps with a port.
_HOST: Final = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


class NoAccess(HttpRefusal):
    """Whoever asks may not ask here at all, nor keep a connection for it."""


def check_access(secret: bytes | None, host: str, authorization: str) -> None:
    """Look at the headers of a request, empty where they are missing.

    Raises:
        NoAccess: 401, the secret is missing or wrong. 403, there is none, and the host is not this machine.
    """
    if secret is not None:
        _check_secret(secret, authorization)
    else:
        _check_host(host)


def check_page(host: str, origin: str, fetch_site: str) -> None:
    """Look at what a browser says of the page that asks. Others say nothing: what is missing is empty.

    Raises:
        NoAccess: 403, it is a page of another site, which asks in its reader's name.
    """
    if fetch_site in ("", "none", "same-origin") and (not origin or origin.rpartition("://")[2] == host):
        return
    message = f"a page of {(origin or 'another site')[:100]!r} asks in its reader's name: pages of other sites may not"
    raise NoAccess(403, message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _check_secret(secret: bytes, authorization: str) -> None:
    given = authorization.encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(given, b"Bearer " + secret):
        raise NoAccess(
            401, "the shared secret is missing or wrong: Authorization: Bearer", ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )


def _check_host(text: str) -> None:
    """Without a secret only this machine can connect; no web page in its browser may do so under its own name."""
    form = _HOST.fullmatch(text)
    host = "" if form is None else form["bracketed"] or form["plain"]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host != "localhost":
            raise NoAccess(
                403,
                f"without a shared secret this node is asked as localhost or by its address, not as {host[:100]!r}",
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ) from None
