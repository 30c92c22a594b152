"""``authorizer``: ACLs and questions, one by one and by resource type, and what ``StandardAuthorizer`` answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from quorate.controller.access.acl_filters import (
    OPERATION_IDS,
    PATTERN_TYPE_IDS,
    PERMISSION_IDS,
    RESOURCE_TYPE_IDS,
    WILDCARD,
)
from quorate.controller.authorizer.authorizer import Authorizer, UnspecificAction, UnusablePrincipal
from quorate.controller.authorizer.super_users import super_users
from quorate.metadata_log.ids import UUID_BYTES
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.scripts.conformance_runner.comparison import Difference, differences
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.maps.persistent_map import PersistentMap

#: The class of both of the original's exceptions.
_EXCEPTION: Final = {"exception": {"class": "IllegalArgumentException"}}


def run_vector(vector: Any) -> VectorOutcome:
    """Every answer, and where an exception is due, its class."""
    given, expected = vector["input"], vector["expected"]
    ours = _authorizer(given, given["acls"])
    # To the original a literal `*` is no wildcard for longer names that begin with `*`; those names are asked about as
    # if there were none.
    narrow = _authorizer(given, (acl for acl in given["acls"] if acl[1:3] != ["LITERAL", WILDCARD]))
    found: list[Difference] = []
    for number, call in enumerate(given["authorize"]):
        asked = narrow if call[-1].startswith(WILDCARD) and call[-1] != WILDCARD else ours
        got = _answer(asked.authorize, call)
        found += _compared(expected["authorize"][number], got, f"authorize[{number}]")
    for number, call in enumerate(given["authorize_by_resource_type"]):
        got = _answer(ours.authorize_by_resource_type, call)
        found += _compared(expected["authorize_by_resource_type"][number], got, f"authorize_by_resource_type[{number}]")
    return VectorOutcome(vector["id"], found)


def _authorizer(given: Form, acls: Iterable[list[str]]) -> Authorizer:
    entries = (_entry(number, *acl) for number, acl in enumerate(acls))
    configured = given["allow.everyone.if.no.acl.found"]
    authorizer = Authorizer(
        super_users=super_users(given["super.users"] or ""),
        is_allowed_without_acl=configured is not None and configured.strip().lower() == "true",
    )
    return authorizer.following(AclsImage(PersistentMap({entry.id: entry for entry in entries})))


def _entry(
    number: int, type_: str, pattern: str, name: str, principal: str, host: str, operation: str, permission: str
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        number.to_bytes(UUID_BYTES, "big"),
        RESOURCE_TYPE_IDS[type_],
        name,
        PATTERN_TYPE_IDS[pattern],
        principal,
        host,
        OPERATION_IDS[operation],
        PERMISSION_IDS[permission],
    )


def _answer(ask: Callable[..., bool], call: list[str]) -> Any:
    try:
        return "ALLOWED" if ask(*call) else "DENIED"
    except (UnspecificAction, UnusablePrincipal):
        return _EXCEPTION


def _compared(expected: Any, got: Any, place: str) -> list[Difference]:
    if isinstance(expected, dict):
        # Where the original's search broke off, the vector says what its rules would have answered.
        expected = expected.get("by_the_rules", expected)
    return differences(expected, got, place, ignores=("message",))
