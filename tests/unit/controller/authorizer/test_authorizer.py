"""Decisions by ACLs: rules that Kafka's vectors do not hold, and each rule once, by name."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.authorizer.authorizer import Authorizer, UnspecificAction, UnusablePrincipal
from quorate.controller.authorizer.hosts import java_host
from quorate.controller.authorizer.super_users import super_users
from quorate.metadata_log.errors import ErrorCode
from tests.unit.controller.authorizer.acl_sets import AclRow, acl, acls_image

HOST = "10.0.0.1"


def authorizer(*rows: AclRow, **settings: Any) -> Authorizer:
    return Authorizer(**settings).following(acls_image(rows))


def may(
    asked: Authorizer, what: Any = "READ", name: str = "orders", *, who: str = "User:ana", host: str = HOST
) -> bool:
    return asked.authorize(who, host, what, "TOPIC", name)


def test_deny_wins_over_allow_of_any_width() -> None:
    asked = authorizer(acl(what="ALL"), acl("ord", pattern="PREFIXED", permission="DENY"))

    assert (may(asked), may(asked, "WRITE")) == (False, True)


def test_prefix_covers_longer_names_and_a_literal_only_itself() -> None:
    asked = authorizer(acl("ord", pattern="PREFIXED"), acl("bills"))

    assert [may(asked, name=name) for name in ("ord", "orders", "or", "bills", "bills2")] == [
        True,
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["x", "*", "*x", "#c", " ", "(", "é"])
def test_wildcard_covers_every_name(name: str) -> None:
    """Also names that begin with the wildcard itself, or sort before it: there Kafka's own search goes wrong."""
    allowed = authorizer(acl("*"), acl("#b", pattern="PREFIXED"))
    denied = authorizer(acl("*", permission="DENY"), acl("*", what="ALL"), acl("#b"))

    assert may(allowed, name=name)
    assert not may(denied, name=name)
    assert may(denied, "WRITE", name=name)


def test_implied_operations_are_allowed_and_not_denied() -> None:
    for what in ("READ", "WRITE", "DELETE", "ALTER"):
        assert may(authorizer(acl(what=what)), "DESCRIBE")
        assert may(authorizer(acl(what=what, permission="DENY"), acl(what="DESCRIBE")), "DESCRIBE")
    assert may(authorizer(acl(what="ALTER_CONFIGS")), "DESCRIBE_CONFIGS")
    assert not may(authorizer(acl(what="ALTER_CONFIGS")), "DESCRIBE")
    assert not may(authorizer(acl(what="CREATE")), "DESCRIBE")


def test_all_operations_are_every_one_of_them() -> None:
    assert may(authorizer(acl(what="ALL")), "TWO_PHASE_COMMIT")
    assert not may(authorizer(acl(what="READ")), "ALL")
    assert not may(authorizer(acl(what="ALL", permission="DENY"), acl()))


def test_acl_about_somebody_else_turns_the_default_off() -> None:
    other = acl("ord", pattern="PREFIXED", who="User:bo", host="1.2.3.4", what="WRITE")
    asked = authorizer(other, is_allowed_without_acl=True)

    assert (may(asked), may(asked, name="bills")) == (False, True)
    assert not may(authorizer(other), name="bills")


def test_principals_are_text_but_for_everyone() -> None:
    everyone = authorizer(acl(who="User:*"))
    assert may(everyone, who="Group:ana")
    for who in ("User:a*", "Group:*", "user:ana", "User:Ana"):
        assert not may(authorizer(acl(who=who)))


def test_client_called_everyone_is_refused_unless_it_is_a_super_user() -> None:
    asked = authorizer(acl(who="User:*"))
    for ask in (asked.authorize, asked.authorize_by_resource_type):
        with pytest.raises(UnusablePrincipal, match=r"User:\*") as refused:
            ask("User:*", HOST, "READ", "TOPIC", *(["orders"] if ask == asked.authorize else []))
        assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert may(authorizer(super_users=["User:*"]), who="User:*")
    assert not may(authorizer(super_users=["User:*"]))


def test_super_user_is_above_denials() -> None:
    denied = acl("*", who="User:*", what="ALL", permission="DENY")
    assert may(authorizer(denied, super_users=["User:ana"]))


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::10.0.0.1", "0:0:0:0:0:0:a00:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("a:b", "a:b"),
        ("", ""),
    ],
)
def test_hosts_are_compared_as_java_writes_them(address: str, written: str) -> None:
    assert java_host(address) == written
    assert may(authorizer(acl(host=written)), host=address)


def test_short_forms_networks_and_names_match_no_host() -> None:
    for host in ("::1", "10.0.0.0/8", "localhost"):
        assert not may(authorizer(acl(host=host)), host="::1" if host == "::1" else HOST)


def by_type(asked: Authorizer, what: Any = "READ") -> bool:
    return asked.authorize_by_resource_type("User:ana", HOST, what, "TOPIC")


def test_by_type_an_allowance_counts_where_nothing_above_it_is_denied() -> None:
    allowed = acl("orders.eu", pattern="PREFIXED")
    assert by_type(authorizer(allowed))
    assert not by_type(authorizer(allowed, acl("orders", pattern="PREFIXED", permission="DENY", who="User:*")))
    assert not by_type(authorizer(allowed, acl("orders.eu", pattern="PREFIXED", permission="DENY", host=HOST)))
    assert by_type(authorizer(allowed, acl("orders.eu", permission="DENY")))
    assert not by_type(authorizer(acl("orders"), acl("orders", permission="DENY")))


def test_by_type_an_allowance_for_all_outweighs_denials_but_the_one_for_all() -> None:
    assert by_type(authorizer(acl("*"), acl("o", pattern="PREFIXED", permission="DENY")))
    denied_prefixes = [acl(name, pattern="PREFIXED", permission="DENY") for name in ("*", "hard")]
    assert by_type(authorizer(acl("*"), *denied_prefixes))
    assert not by_type(authorizer(acl("*"), acl("*", permission="DENY"), acl("orders")))


def test_by_type_nothing_is_implied_but_for_the_name_that_kafka_asks_for() -> None:
    assert not by_type(authorizer(acl(what="WRITE")), "DESCRIBE")
    assert by_type(authorizer(acl("hardcode", what="WRITE")), "DESCRIBE")
    assert by_type(authorizer(acl(who="User:bo"), is_allowed_without_acl=True))


def test_by_type_any_is_no_question() -> None:
    asked = authorizer()
    with pytest.raises(UnspecificAction, match="ANY on TOPIC"):
        asked.authorize_by_resource_type("User:ana", HOST, "ANY", "TOPIC")
    with pytest.raises(UnspecificAction, match="READ on ANY"):
        asked.authorize_by_resource_type("User:ana", HOST, "READ", "ANY")


def test_super_users_are_separated_by_semicolons() -> None:
    assert super_users(" User:ana;;User:CN=x,O=y ; ") == {"User:ana", "User:CN=x,O=y"}
    assert super_users("") == frozenset()
    with pytest.raises(ValueError, match="'ana' has no type"):
        super_users("User:bo;ana")
