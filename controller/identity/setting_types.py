"""Types of settings that say who is who."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

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


#: ``Type:name``.
Principals = Annotated[tuple[Annotated[str, AfterValidator(_check_listed_principal)], ...], Field(max_length=1_000)]
#: Kafka's ssl.principal.mapping.rules.
MappingRules = Annotated[str, AfterValidator(_check_mapping)]
