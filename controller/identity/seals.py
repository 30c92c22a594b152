"""Seals: what shows that a request is a controller's, where no certificate does.

A controller seals the requests that it makes of others, its own and those that it passes on for clients, with a key
that follows from the shared secret of the quorum, and never goes over the wire. What HTTP clients send opens no
quorum, and what they have makes no seal. A seal holds for one request: its line, who makes it for whom, its body, and
the minute. Whoever can change what is on the network can send the same request again within that minute: TLS is what
keeps him from that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from quorate.controller.api import headers
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.keys import DerivedKeys
from quorate.controller.identity.secrets import Secrets

#: Takes the method, target, headers and body of a request, and gives its `Authorization` header.
Seal = Callable[[str, str, Mapping[str, str], bytes], str]
#: Scheme of the `Authorization` header.
SCHEME: Final = "Quorate-Seal"
#: A seal is believed for so long, and the clocks of two controllers may be that far apart.
VALID_MS: Final = 60_000
_LABEL: Final = b"quorate http request of a controller 1"
_FORM: Final = re.compile(r"Quorate-Seal ([0-9]{1,10})\.([0-9]{1,15})\.([0-9a-f]{64})\.([0-9a-f]{64})")
#: The headers that a seal covers, beside the request's line.
_COVERED: Final = (
    headers.HOPS,
    headers.CLIENT,
    headers.CLIENT_ID,
    headers.PRINCIPAL,
    headers.IDENTITY,
    headers.PROXY,
    headers.REQUEST_ID,
)


class Seals:
    """Makes and looks at the seals of one controller."""

    def __init__(self, secrets: Secrets, node_id: int, voters: frozenset[int], wall_ms: Callable[[], float]) -> None:
        """``voters``: whose seals are believed. ``wall_ms``: milliseconds since 1970."""
        self._keys = DerivedKeys(secrets, _LABEL)
        self._node_id = node_id
        self._voters = voters
        self._wall_ms = wall_ms

    def seal(self, method: str, target: str, sent_headers: Mapping[str, str], body: bytes) -> str:
        """The `Authorization` header of a request of this controller.

        ``target``: as it stands in the request's line.
        """
        at_ms, digest = int(self._wall_ms()), hashlib.sha256(body).hexdigest()
        fields = {name.lower(): value for name, value in sent_headers.items()}
        mac = self._keys.mac(_said(self._node_id, at_ms, method, target, fields, digest))
        return f"{SCHEME} {self._node_id}.{at_ms}.{digest}.{mac}"

    def check(
        self, claims: RequestClaims, is_at_the_other_end: Callable[[int], bool] = lambda node_id: False
    ) -> tuple[int, bytes]:
        """The controller that sealed a request, and the SHA-256 of the body that it sealed with it.

        ``is_at_the_other_end``: whether a controller has shown by its certificate that the connection is its own.
        Nobody sends its requests again there, and clocks that are apart do no harm.

        Raises:
            NoAccess: 401, it is no good seal of this request.
        """
        form = _FORM.fullmatch(claims.field("authorization"))
        if form is None:
            raise NoAccess(401, "the seal of this request is not in its form")
        node_id, at_ms, digest = int(form[1]), int(form[2]), form[3]
        said = _said(node_id, at_ms, claims.method, claims.target, claims.fields, digest)
        if node_id not in self._voters or not self._keys.is_mac(form[4], said):
            raise NoAccess(401, "the seal of this request is no controller's of this quorum")
        if abs(self._wall_ms() - at_ms) > VALID_MS and not is_at_the_other_end(node_id):
            ago_s = (self._wall_ms() - at_ms) / 1000
            limit = f"{VALID_MS // 1000} s is the most: are the clocks of the controllers apart?"
            raise NoAccess(401, f"the seal of this request was made {ago_s:.0f} s ago, and {limit}")
        return node_id, bytes.fromhex(digest)


def _said(
    node_id: int, at_ms: int, method: str, target: str, fields: Mapping[str, str], digest: str
) -> tuple[bytes, ...]:
    covered = (fields.get(name.lower(), "") for name in _COVERED)
    parts = (str(node_id), str(at_ms), method, target, *covered, digest)
    return tuple(text.encode("utf-8", "surrogateescape") for text in parts)
