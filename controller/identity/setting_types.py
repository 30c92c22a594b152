"""Types of settings that say who is who."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from quorate.controller.decisions.origin import check_principal
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.metadata_log.errors import ApiError, QuorateError


def _check_listed_principal(text: str) -> str:
    try:
        return check_principal(text)
    except ApiError as error:
        raise ValueError(error.message) from None


def _check_mapping(text: str) -> str:
    try:
        PrincipalMapping(text)
    except QuorateError as error:
        raise ValueError(str(error)) from None
    return text


class NamedUid(NamedTuple):
    """A user of this machine, and whom he asks as."""

    uid: int
    principal: str


def _named_uid(value: object) -> NamedUid:
    uid, equals, principal = str(value).partition("=")
    if not equals or not uid.isascii() or not uid.isdigit() or len(uid) > 10 or int(uid) >= 2**32:
        raise ValueError("it must be a user's number and a principal, such as 1000=User:ana")
    return NamedUid(int(uid), _check_listed_principal(principal))


#: Signatures of JSON Web Tokens by a private key: none is by a secret that verifiers have, too, and none is ``none``.
JwtAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
#: ``Type:name``.
Principals = Annotated[tuple[Annotated[str, AfterValidator(_check_listed_principal)], ...], Field(max_length=1_000)]
#: Kafka's ssl.principal.mapping.rules.
MappingRules = Annotated[str, AfterValidator(_check_mapping)]
#: ``UID=Type:name``.
NamedUids = Annotated[tuple[Annotated[NamedUid, BeforeValidator(_named_uid)], ...], Field(max_length=1_000)]
