"""The ACL or rule by which something was allowed, in the words of the audit."""

from __future__ import annotations

import pytest

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.protocol.acls import AclOperation
from tests.unit.controller.authorizer.acl_sets import AclRow, acl, acls_image

ANY_HOST = "10.0.0.1"


@pytest.mark.parametrize(
    ("row", "operation", "reason"),
    [
        (acl(what="ALTER"), "ALTER", "ALLOW ALTER on TOPIC orders to User:ana from *"),
        (acl(what="ALL"), "ALTER", "ALLOW ALL on TOPIC orders to User:ana from *"),
        (acl(what="WRITE"), "DESCRIBE", "ALLOW WRITE on TOPIC orders to User:ana from *"),
        (acl("ord", pattern="PREFIXED"), "READ", "ALLOW READ on TOPIC PREFIXED ord to User:ana from *"),
        (acl("*", who="User:*", host=ANY_HOST), "READ", f"ALLOW READ on TOPIC * to User:* from {ANY_HOST}"),
    ],
)
def test_acl_that_allows_is_named(row: AclRow, operation: AclOperation, reason: str) -> None:
    noise = [acl("other", what="ALL"), acl(who="User:bo", what="ALL"), acl(what="CREATE"), acl("orders-eu", what="ALL")]
    authorizer = Authorizer().following(acls_image([row, *noise]))
    asked = ("User:ana", ANY_HOST, operation, "TOPIC", "orders")
    assert authorizer.authorize(*asked)  # type: ignore[arg-type]
    assert authorizer.reason(*asked) == reason  # type: ignore[arg-type]


def test_rules_of_the_settings_are_named() -> None:
    authorizer = Authorizer(super_users=["User:root"], is_allowed_without_acl=True)
    assert authorizer.reason("User:root", ANY_HOST, "ALTER", "TOPIC", "t") == "access.super_users"
    assert authorizer.reason("User:ana", ANY_HOST, "ALTER", "TOPIC", "t") == "access.allow_everyone_if_no_acl_found"


def test_reason_is_bounded_whatever_an_acl_is_about() -> None:
    name = "x" * 8_000
    authorizer = Authorizer().following(acls_image([acl(name)]))
    assert len(authorizer.reason("User:ana", ANY_HOST, "READ", "TOPIC", name)) < 400
