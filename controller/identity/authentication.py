"""Finds out who makes a request where an authorizer asks: the first that the request offers counts.

In this order: a seal, which only controllers make; the certificate of its connection; a token; the user of this machine
at the other end of the Unix socket; nothing, which is ``User:ANONYMOUS``. What is offered and wrong is refused, and not
passed over for the next. A request that a controller passes on is its client's: who that is, the controller has found
out, and its seal says so, for a certificate that somebody stole would make him everybody.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from quorate.controller.api import headers
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import UNKNOWN_TOKEN, NoAccess, RequestClaims, check_host, client_address
from quorate.controller.identity.found_tokens import FoundTokens
from quorate.controller.identity.identity import NOBODY, PROOFS, Caller, Identity, NodeIdentity, Proof
from quorate.controller.identity.seals import SCHEME, Seals
from quorate.controller.identity.uids import UidIdentities

_BEARER: Final = "Bearer "
#: What ``forwarded_identity`` makes: a proof, perhaps a node, perhaps its end.
_FORWARDED: Final = re.compile(r"([a-z-]++)(?: ((?:broker|controller)/[0-9,]++))?(?: until/([0-9]{1,15}))?")
#: Headers that only a request has which was passed on.
_PASSED_ON: Final = (headers.HOPS, headers.CLIENT, headers.IDENTITY, headers.PROXY)


class IdentityAuthentication:
    """``Authentication`` by seals, certificates and tokens."""

    def __init__(
        self,
        tokens: FoundTokens,
        certificates: CertificateIdentities,
        seals: Seals | None,
        proxies: frozenset[str],
        uids: UidIdentities | None = None,
        *,
        are_seals_certified: bool = False,
    ) -> None:
        """``seals`` None: controllers are known by their certificates, and pass nothing on. ``proxies``: who may ask in
        other names.

        ``are_seals_certified``: controllers show their certificates, and a seal counts on a connection of its maker
        alone: whoever has read one cannot use it again.
        """
        self._are_seals_certified = are_seals_certified
        self._uids = uids
        self._tokens = tokens
        self._certificates = certificates
        self._seals = seals
        self._proxies = proxies

    @property
    def generation(self) -> int:
        """See ``Authentication``."""
        return self._tokens.generation

    def identify(self, claims: RequestClaims) -> Caller:
        """See ``Authentication``."""
        identity, body_digest = self._proved(claims)
        if identity.node is not None and identity.node.role == "controller":
            if claims.hops():
                if body_digest is None:
                    message = "a request that was passed on is sealed by its controller: its certificate is not enough"
                    raise NoAccess(401, message)
                passed_on, client, proxy = _passed_on(claims), _client(claims), claims.proxy()
                return Caller(passed_on, client, claims.hops(), body_digest, claims.client_id(), proxy)
        elif any(claims.field(name) for name in _PASSED_ON):
            raise NoAccess(403, f"{_named(_PASSED_ON)} are for controllers, which pass requests on: send none of them")
        named, proxy = claims.named_principal(), ""
        if named is not None and named != identity.principal:
            if identity.principal not in self._proxies:
                message = f"{identity.principal} may not ask in the name of {named}: it is not among access.proxies"
                raise NoAccess(403, message)
            proxy, identity = identity.principal, Identity(named, identity.proof, ends_ms=identity.ends_ms)
        return Caller(identity, claims.address, 0, body_digest, claims.client_id(), proxy)

    def _proved(self, claims: RequestClaims) -> tuple[Identity, bytes | None]:
        """The identity of whoever is at the other end of the connection, and the digest of the sealed body."""
        authorization = claims.field("authorization")
        if authorization.startswith(SCHEME + " ") and self._seals is not None:
            is_at_the_other_end = partial(self._is_at_the_other_end, claims.certificate)
            node_id, body_digest = self._seals.check(claims, is_at_the_other_end)
            if self._are_seals_certified and not is_at_the_other_end(node_id):
                message = f"a seal of controller {node_id} counts only on a connection with its certificate"
                raise NoAccess(401, message)
            return Identity(
                f"Controller:{node_id}", "seal", NodeIdentity("controller", frozenset({node_id}))
            ), body_digest
        if claims.certificate is not None:
            return self._certificates.identity(claims.certificate), None
        if authorization.startswith(_BEARER):
            found = self._tokens.find(authorization.removeprefix(_BEARER))
            if found is None:
                raise NoAccess(401, UNKNOWN_TOKEN)
            return found, None
        if authorization:
            raise NoAccess(401, "Authorization must be Bearer and a token")
        if claims.uid is not None and self._uids is not None:
            return self._uids.identity(claims.uid), None
        check_host(claims.field("host"))
        return NOBODY, None

    def _is_at_the_other_end(self, certificate: bytes | None, node_id: int) -> bool:
        """Whether a connection's certificate is that of a controller."""
        if certificate is None:
            return False
        node = self._certificates.identity(certificate).node
        return node is not None and node.role == "controller" and node_id in node.ids


def forwarded_identity(identity: Identity) -> str:
    """The header by which a controller says how its client proved who it is, which node it is, and until when."""
    node = "" if identity.node is None else f" {identity.node}"
    return identity.proof + node + ("" if identity.ends_ms is None else f" until/{identity.ends_ms}")


def _passed_on(claims: RequestClaims) -> Identity:
    principal, form = claims.named_principal(), _FORWARDED.fullmatch(claims.field(headers.IDENTITY))
    if principal is not None and form is not None:
        proof: Proof | None = next((proof for proof in PROOFS if proof == form[1]), None)
        node = NodeIdentity.parse(form[2]) if form[2] else None
        if proof is not None and (node is not None or not form[2]):
            return Identity(principal, proof, node, int(form[3]) if form[3] else None)
    raise NoAccess(401, f"a request that was passed on says who made it: {headers.PRINCIPAL}, {headers.IDENTITY}")


def _client(claims: RequestClaims) -> str:
    return client_address(claims.field(headers.CLIENT))


def _named(names: tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1]))
