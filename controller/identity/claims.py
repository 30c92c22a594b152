"""Claims: what a request says of who makes it, before any of it is believed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.decisions.origin import check_client_id, check_principal
from quorate.controller.identity.identity import Caller
from quorate.metadata_log.errors import ApiError, ErrorCode

#: The answer to a token that is nobody's, of whatever kind it may be meant to be.
UNKNOWN_TOKEN: Final = "nobody has this token (Authorization: Bearer), or nobody has it any more"
_HOPS_DIGITS_MAX: Final = 2
#: An IPv6 address that ends in an IPv4 address.
_ADDRESS_CHARS_MAX: Final = 45
#: A `Host` header: a name or an address, perhaps with a port.
_HOST: Final = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


class NoAccess(HttpRefusal):
    """Whoever asks may not ask here at all, nor keep a connection for it."""

    def __init__(
        self, status: int, message: str, noted: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        """``status``: 401 where a proof is missing or wrong, 403 where it is good and does not suffice, 429 where many
        were wrong.

        ``noted``: what is written down of it, where whoever asks is told less. ``details``: see ``ApiError``.
        """
        super().__init__(status, message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, details)
        self.noted = noted or message


class RequestClaims(NamedTuple):
    """The head of one request, as far as it is about its sender. Texts are empty where headers are missing."""

    method: str
    #: As it stands in the request's line, query included.
    target: str
    #: IP address of the other end of the connection.
    address: str
    #: Names in lower case.
    fields: Mapping[str, str]
    #: The certificate (DER) that the connection was made with, of a CA that is trusted; None: none was shown.
    certificate: bytes | None = None
    #: The user of this machine who asks through the Unix socket; None: it came another way.
    uid: int | None = None

    def field(self, name: str) -> str:
        """A header."""
        return self.fields.get(name.lower(), "")

    def named_principal(self) -> str | None:
        """The principal in whose name the request is made; None: it names none.

        Raises:
            HttpRefusal: 400, it is none.
        """
        return self._principal_in(headers.PRINCIPAL)

    def proxy(self) -> str:
        """The principal that asked a controller in another's name; empty: none did.

        Raises:
            HttpRefusal: 400, it is none.
        """
        return self._principal_in(headers.PROXY) or ""

    def _principal_in(self, name: str) -> str | None:
        text = self.fields.get(name.lower())
        if text is None:
            return None
        try:
            return check_principal(text)
        except ApiError as error:
            raise HttpRefusal(400, f"header {name}: {error.message}") from None

    def client_id(self) -> str:
        """The name that the program gives itself; empty: none.

        Raises:
            HttpRefusal: 400, it is too long, or not of printable ASCII.
        """
        try:
            return check_client_id(self.field(headers.CLIENT_ID))
        except ApiError as error:
            raise HttpRefusal(400, f"header {headers.CLIENT_ID}: {error.message}") from None

    def hops(self) -> int:
        """The number of times that the request is said to have been passed on.

        Raises:
            HttpRefusal: 400, the header is no number.
        """
        text = self.fields.get(headers.HOPS.lower(), "0")
        if not text.isascii() or not text.isdigit() or len(text) > _HOPS_DIGITS_MAX:
            raise HttpRefusal(400, f"header {headers.HOPS} must be a small number, not {text[:20]!r}")
        return int(text)


class Authentication(Protocol):
    """Finds out who makes a request."""

    @property
    def generation(self) -> int:
        """A number that is another one as soon as an answer of ``identify`` may be."""

    def identify(self, claims: RequestClaims) -> Caller:
        """The caller that makes the request.

        Raises:
            NoAccess: 401 or 403. HttpRefusal: 400, a header that is not in its form.
        """


def client_address(text: str) -> str:
    """The IP address in the header of a request that was passed on, in its usual form.

    Raises:
        HttpRefusal: 400, it is none.
    """
    try:
        if len(text) > _ADDRESS_CHARS_MAX:
            raise ValueError
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise HttpRefusal(400, f"header {headers.CLIENT} must be an IP address, not {text[:20]!r}") from None


def check_host(text: str) -> None:
    """Look at the `Host` of a request that proves nothing, which only this machine's programs may send.

    A web page in a browser of this machine reaches this port, too: under the page's own name.

    Raises:
        NoAccess: 403, it is not this machine that is asked.
    """
    form = _HOST.fullmatch(text)
    host = "" if form is None else form["bracketed"] or form["plain"]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host != "localhost":
            message = "without a shared secret this node is asked as localhost or by its address"
            raise NoAccess(403, f"{message}, not as {host[:100]!r}") from None
