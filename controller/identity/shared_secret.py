"""Access without an authorizer: whoever has the shared secret may do everything, in whatever name."""

from __future__ import annotations

import hmac

from quorate.controller.api import headers
from quorate.controller.decisions.origin import ANONYMOUS
from quorate.controller.identity.claims import NoAccess, RequestClaims, check_host, client_address
from quorate.controller.identity.identity import Caller, Identity


class SharedSecretAuthentication:
    """``Authentication`` by the shared secret or, where there is none, by being on this machine."""

    #: What it says of a request never changes.
    generation = 0

    def __init__(self, secret: bytes | None) -> None:
        """None: whoever reaches the port may do everything (loopback only)."""
        self._secret = secret

    def identify(self, claims: RequestClaims) -> Caller:
        """See ``Authentication``: who it is, is what the client says."""
        if self._secret is None:
            check_host(claims.field("host"))
        else:
            self._check_secret(self._secret, claims.field("authorization"))
        hops = claims.hops()
        identity = Identity(claims.named_principal() or ANONYMOUS, "said")
        named = claims.fields.get(headers.CLIENT.lower()) if hops else None
        return Caller(identity, claims.address if named is None else client_address(named), hops)

    def _check_secret(self, secret: bytes, authorization: str) -> None:
        given = authorization.encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, b"Bearer " + secret):
            raise NoAccess(401, "the shared secret is missing or wrong: Authorization: Bearer")
