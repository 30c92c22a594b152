"""Access without an authorizer: whoever has the shared secret may do everything, in whatever name.

So may, through the Unix socket, the user that the process runs as.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from quorate.controller.api import headers
from quorate.controller.decisions.origin import ANONYMOUS
from quorate.controller.identity.claims import NoAccess, RequestClaims, check_host, client_address
from quorate.controller.identity.identity import Caller, Identity
from quorate.controller.identity.secrets import Secrets
from quorate.controller.identity.uids import UidIdentities


class SharedSecretAuthentication:
    """``Authentication`` by the shared secret or, where there is none, by being on this machine."""

    def __init__(self, secrets: Secrets | None, uids: UidIdentities | None = None) -> None:
        """None: whoever reaches the port may do everything (loopback only). ``uids``: who may by his number."""
        self._secrets = secrets
        self._uids = uids
        self._believed = () if secrets is None else secrets()
        self._generation = 0

    @property
    def generation(self) -> int:
        """See ``Authentication``."""
        if self._secrets is not None and (believed := self._secrets()) != self._believed:
            self._believed = believed
            self._generation += 1
        return self._generation

    def identify(self, claims: RequestClaims) -> Caller:
        """See ``Authentication``: who it is, is what the client says."""
        named_principal = claims.named_principal()
        identity = Identity(named_principal or ANONYMOUS, "said")
        if claims.uid is not None and self._uids is not None and self._uids.is_known(claims.uid):
            identity = identity if named_principal else self._uids.identity(claims.uid)
        elif self._secrets is not None:
            _check_secret(self._secrets(), claims.field("authorization"))
        elif claims.uid is None:
            check_host(claims.field("host"))
        hops = claims.hops()
        named = claims.fields.get(headers.CLIENT.lower()) if hops else None
        address = claims.address if named is None else client_address(named)
        return Caller(identity, address, hops, client_id=claims.client_id())


def _check_secret(believed: Iterable[bytes], authorization: str) -> None:
    given = authorization.encode("utf-8", "surrogateescape")
    # Each is compared, whatever the others are: how long it takes tells nothing.
    if not sum(hmac.compare_digest(given, b"Bearer " + secret) for secret in believed):
        raise NoAccess(401, "the shared secret is missing or wrong: Authorization: Bearer")
