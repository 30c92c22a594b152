"""The keys of an issuer of JSON Web Tokens (JWKS, RFC 7517): public ones for signatures, by their ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, get_args

import jwt

from quorate.controller.identity.setting_types import JwtAlgorithm
from quorate.metadata_log.errors import QuorateError

#: Bytes of a key set, and keys in it.
JWKS_BYTES_MAX: Final = 262_144
JWKS_KEYS_MAX: Final = 100
_ALGORITHMS: Final = get_args(JwtAlgorithm)

#: Of an RSA key, in bits (RFC 7518, 3.3 and 3.5: a smaller one must not be used).
RSA_BITS_MIN: Final = 2_048

#: What a set lacks of which no key can be used.
_SUITABLE: Final = f"with a kid, for signatures by {', '.join(_ALGORITHMS)}, an RSA key of {RSA_BITS_MIN} bits or more"
NO_KEY: Final = f"the key set has no public key {_SUITABLE}"


class InvalidJwks(QuorateError, ValueError):
    """A text that is no key set."""


class IssuerKeys:
    """The keys of an issuer as they were at one time. Equal where they say the same; there may be none."""

    def __init__(self, keys: Mapping[str, tuple[jwt.PyJWK, Mapping[str, object]]]) -> None:
        """By id: each, and what the set said of it."""
        self._keys = {key_id: key for key_id, (key, _) in keys.items()}
        self._said = {key_id: said for key_id, (_, said) in keys.items()}

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IssuerKeys) and self._said == other._said

    def __hash__(self) -> int:
        return hash(frozenset(self._said))

    def find(self, key_id: str) -> jwt.PyJWK | None:
        """The key with this id."""
        return self._keys.get(key_id)

    @classmethod
    def parse(cls, data: bytes) -> IssuerKeys:
        """All keys of a set that are for what is used here; others are passed over, as the RFC has it.

        Raises:
            InvalidJwks: it is none, or too large.
        """
        if len(data) > JWKS_BYTES_MAX:
            raise InvalidJwks(f"a key set has at most {JWKS_BYTES_MAX} bytes")
        try:
            listed = json.loads(data)["keys"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidJwks('a key set is JSON of the form {"keys": [...]} (RFC 7517)') from None
        if not isinstance(listed, list) or len(listed) > JWKS_KEYS_MAX:
            raise InvalidJwks(f"a key set has a list of at most {JWKS_KEYS_MAX} keys")
        return cls({key_id: (key, one) for one in listed if (key_id := _id(one)) and (key := _key(one)) is not None})


def _id(one: object) -> str:
    key_id = one.get("kid") if isinstance(one, dict) else None
    return key_id if isinstance(key_id, str) else ""


def _key(one: dict[str, object]) -> jwt.PyJWK | None:
    # A private key that was published is everybody's. Other uses are told twice (RFC 7517, 4.2 and 4.3).
    uses = one.get("key_ops", ["verify"])
    if one.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses or "d" in one:
        return None
    try:
        key = jwt.PyJWK(one)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, NotImplementedError):  # the last two of `oct` and `none`
        return None
    if key.key_type == "RSA" and key.key.key_size < RSA_BITS_MIN:
        return None
    # None by a secret: whoever reads the set could sign by it.
    return key if key.algorithm_name in _ALGORITHMS else None
