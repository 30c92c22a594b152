"""JSON Web Tokens of an OpenID Connect issuer (RFC 7519, RFC 8725): who they are of, by the issuer's signature.

Whoever shows a wrong one is told no more than that; what was wrong is written down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import jwt

from quorate.controller.decisions.origin import check_principal
from quorate.controller.identity.claims import UNKNOWN_TOKEN, NoAccess
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.issuer.key_sets import IssuerKeys
from quorate.controller.identity.setting_types import JwtAlgorithm
from quorate.metadata_log.errors import ApiError, QuorateError

#: Characters of the longest token that is looked at: a request's head has no room for more.
JWT_CHARS_MAX: Final = 8_000
#: The last second of the year 9999, since 1970: no claim is about later ones, and every calculation with it is exact.
SECONDS_MAX: Final = 253_402_300_799
_FORM: Final = re.compile(r"[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++")


class WrongJwt(QuorateError):
    """A token that does not say what it must."""


@dataclass(frozen=True, slots=True)
class JwtRules:
    """The rules by which a token is believed."""

    issuer: str
    audience: str
    algorithms: tuple[JwtAlgorithm, ...]
    #: The claim that is the user's name, and what stands before it there.
    principal_claim: str
    principal_prefix: str
    #: Clocks may be so far apart, in milliseconds.
    clock_skew_ms: int


class KeySource(Protocol):
    """The issuer's keys, which may change while the process runs."""

    @property
    def generation(self) -> int:
        """Another number for other keys."""

    def __call__(self) -> IssuerKeys:
        """Those of the moment."""

    def want(self, key_id: str) -> None:
        """A token names a key that is not among them: there may be newer ones."""


class JwtTokens:
    """``FoundTokens`` of one issuer. Owned by the loop thread."""

    def __init__(self, rules: JwtRules, keys: KeySource, wall_ms: Callable[[], float]) -> None:
        """``wall_ms``: milliseconds since 1970."""
        self._rules = rules
        self._keys = keys
        self._wall_ms = wall_ms
        self._ended = 0
        #: When the first of the tokens ends that were found since the last ended.
        self._first_end_ms = math.inf

    @property
    def generation(self) -> int:
        """See ``FoundTokens``: another one when a token that was found has ended, or the keys are others."""
        if self._wall_ms() >= self._first_end_ms:
            self._ended, self._first_end_ms = self._ended + 1, math.inf
        return self._ended + self._keys.generation

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``; None: it has not the form of such a token.

        Raises:
            NoAccess: 401, it has, and is not to be believed.
        """
        if len(token) > JWT_CHARS_MAX or not _FORM.fullmatch(token):
            return None
        try:
            claims = self._believed(token)
            ends_ms = int(claims["exp"] * 1000) + self._rules.clock_skew_ms
            principal = check_principal(f"User:{self._rules.principal_prefix}{claims[self._rules.principal_claim]}")
        except (jwt.PyJWTError, ApiError, WrongJwt) as error:
            raise NoAccess(401, UNKNOWN_TOKEN, f"a JWT: {error}") from None
        self._first_end_ms = min(self._first_end_ms, ends_ms)
        return Identity(principal, "jwt", ends_ms=ends_ms)

    def _believed(self, token: str) -> dict[str, Any]:
        """The claims of a token, all of which hold."""
        rules, skew_s = self._rules, self._rules.clock_skew_ms / 1000
        header = jwt.get_unverified_header(token)
        key_id = header.get("kid")
        key = self._keys().find(key_id) if isinstance(key_id, str) else None
        if key is None:
            self._keys.want(str(key_id))
            raise WrongJwt(f"the issuer has no key {str(key_id)[:80]!r}")
        claims = jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audience,
            issuer=rules.issuer,
            # Times are looked at below, by this process's clock, which the generation goes by, too.
            options={
                "require": ["exp", "iss", "aud", rules.principal_claim],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        now_s = self._wall_ms() / 1000
        for name in ("exp", "nbf", "iat"):
            at = claims.get(name, now_s)
            # Compared, and not converted: an integer of JSON may be one that no float can be.
            if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at <= SECONDS_MAX:
                raise WrongJwt(f"its {name} is no number of seconds since 1970, before the year 10000")
            if now_s >= at + skew_s if name == "exp" else now_s < at - skew_s:
                raise WrongJwt(f"its {name} is {abs(now_s - at):.0f} s {'ago' if name == 'exp' else 'ahead'}")
        if not isinstance(claims[rules.principal_claim], str) or not claims[rules.principal_claim]:
            raise WrongJwt(f"its {rules.principal_claim} is no text, or an empty one")
        return claims
