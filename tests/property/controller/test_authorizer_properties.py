"""The authorizer against a plain scan of all ACLs, while ACLs come and go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorate.controller.authorizer.acl_index import AclIndex
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.snapshots.image.image_parts import AclsImage
from tests.record_stream import EXAMPLES
from tests.unit.controller.authorizer.acl_sets import AclRow, entry

Test = TypeVar("Test", bound=Callable[..., None])
#: Of the letters that decide: before the wildcard, itself, the first of the name that Kafka asks for, beyond ASCII.
NAMES = st.text("#*hé", max_size=3)
PRINCIPALS = ["User:ana", "User:bo", "User:*"]
HOSTS = ["1.1.1.1", "0:0:0:0:0:0:0:1", "*"]
OPERATIONS = ["ALL", "READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"]
ROWS: st.SearchStrategy[AclRow] = st.tuples(
    st.sampled_from(["TOPIC", "GROUP"]),
    st.sampled_from(["LITERAL", "PREFIXED"]),
    NAMES,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from(["ALLOW", "DENY"]),
)
#: ACLs by a small number, None = gone: some change what is there.
STEPS = st.lists(st.dictionaries(st.integers(0, 9), st.none() | ROWS, min_size=1), max_size=4)


def covers(row: AclRow, name: str) -> bool:
    return name.startswith(row[2]) if row[1] == "PREFIXED" else row[2] in (name, "*")


def is_about(row: AclRow, who: str, host: str) -> bool:
    return row[3] in (who, "User:*") and row[4] in (host, "*")


def is_allowed(rows: list[AclRow], who: str, host: str, what: str, of: str, name: str, default: bool) -> bool:
    """Kafka's rules, read once through."""
    there = [row for row in rows if row[0] == of and covers(row, name)]
    about = [row for row in there if is_about(row, who, host)]
    implying = {"DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"), "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",)}.get(what, ())
    if any(row[6] == "DENY" and row[5] in (what, "ALL") for row in about):
        return False
    return any(row[6] == "ALLOW" and row[5] in (what, "ALL", *implying) for row in about) or (default and not there)


def is_allowed_on_some(rows: list[AclRow], who: str, host: str, what: str, of: str, default: bool) -> bool:
    """The same of the question by resource type."""
    if is_allowed(rows, who, host, what, of, "hardcode", default):
        return True
    meant = [row for row in rows if row[0] == of and is_about(row, who, host) and row[5] in (what, "ALL")]
    denied = {row[1:3] for row in meant if row[6] == "DENY"}
    allowed = {row[1:3] for row in meant if row[6] == "ALLOW"}
    if ("LITERAL", "*") in denied | allowed:
        return ("LITERAL", "*") not in denied
    return any(
        not any(name.startswith(above) for kind, above in denied if kind == "PREFIXED")
        and (pattern, name) not in denied
        for pattern, name in allowed
    )


def with_each_operation_asked_of_each(test: Test) -> Test:
    """The examples that no draw may leave out: one ACL, and a question about the same or another operation."""
    for allowed, asked in product(OPERATIONS, OPERATIONS):
        row = ("TOPIC", "LITERAL", "h", "User:ana", "*", allowed, "ALLOW")
        test = example([{0: row}], "h", asked, False)(test)
    return test


@with_each_operation_asked_of_each
@settings(max_examples=EXAMPLES)
@given(STEPS, NAMES, st.sampled_from(OPERATIONS), st.booleans())
def test_authorizer_that_follows_any_changes_decides_as_a_scan_of_all_acls(
    steps: list[dict[int, AclRow | None]], name: str, what: Any, default: bool
) -> None:
    rows: dict[int, AclRow] = {}
    acls = AclsImage()
    index = AclIndex()
    for changes in steps:
        present = {number: row for number, row in changes.items() if row is not None}
        gone = [number for number in changes if number not in present and number in rows]
        rows = {number: row for number, row in (rows | present).items() if number not in gone}
        entries = {entry(number, row).id: entry(number, row) for number, row in present.items()}
        acls = AclsImage(acls.entries.changed(entries, [number.to_bytes(16, "big") for number in gone]))
        index = index.following(acls)

    assert index == AclIndex().following(acls)
    asked = Authorizer(index, is_allowed_without_acl=default)
    for who, host in (("User:ana", "1.1.1.1"), ("User:bo", "::1"), ("Group:bo", "2.2.2.2")):
        written = {"::1": "0:0:0:0:0:0:0:1"}.get(host, host)
        every = list(rows.values())
        assert asked.authorize(who, host, what, "TOPIC", name) is is_allowed(
            every, who, written, what, "TOPIC", name, default
        )
        assert asked.authorize_by_resource_type(who, host, what, "TOPIC") is is_allowed_on_some(
            every, who, written, what, "TOPIC", default
        )
