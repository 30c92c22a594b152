"""Access control of a node: it goes by the newest ACLs, and requests do not pay for taking them in."""

from __future__ import annotations

import pytest

from quorate.controller.authorizer.acl_index import AclIndex
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.identity import Caller, Identity, NodeIdentity
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.permissions.access_control import AccessControl
from quorate.snapshots.image.image_parts import AclsImage
from tests.unit.controller.authorizer.acl_sets import acl, acls_image

ANA = Caller(Identity("User:ana", "token"), "10.0.0.1")


def test_acls_that_were_taken_in_cost_a_request_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_in: list[AclsImage] = []
    follow = AclIndex.following

    def noted(index: AclIndex, acls: AclsImage) -> AclIndex:
        taken_in.append(acls)
        return follow(index, acls)

    monkeypatch.setattr(AclIndex, "following", noted)
    newest = acls_image([acl()])
    access = AccessControl(SharedSecretAuthentication(None), authorizer=Authorizer(), acls=lambda: newest)

    access.moved()
    assert taken_in == [newest]
    assert access.rights(ANA).may("READ", "TOPIC", "orders")
    assert len(taken_in) == 1

    newest = acls_image([acl(permission="DENY")])
    assert not access.rights(ANA).may("READ", "TOPIC", "orders")


def test_node_without_an_authorizer_asks_no_acls() -> None:
    access = AccessControl.by_secret(None)
    access.moved()
    assert access.rights(ANA).may("READ", "TOPIC", "orders")


@pytest.mark.parametrize(
    ("identity", "owner", "bounded"),
    [
        (Identity("User:ana", "token"), "User:ana", "User:ana"),
        (Identity("User:root", "token"), None, "User:root"),
        (Identity("Broker:7", "token", NodeIdentity("broker", frozenset({7}))), None, None),
    ],
    ids=["a user", "a super user", "a node"],
)
def test_who_is_the_clusters_own_is_so_before_and_after_there_are_rights(
    identity: Identity, owner: str | None, bounded: str | None
) -> None:
    """Only what brokers live by is bounded for super users, too."""
    secrets = SharedSecretAuthentication(None)
    access = AccessControl(secrets, authorizer=Authorizer(), super_users=frozenset({"User:root"}))
    caller = Caller(identity, "10.0.0.1")
    rights = access.rights(caller)
    assert (access.owner_of_body(caller), rights.owner, rights.bounded_principal) == (owner, owner, bounded)
    everybody = AccessControl.by_secret(None)
    assert (everybody.owner_of_body(caller), everybody.rights(caller).owner) == (None, None)


def test_node_is_put_into_words_only_for_who_asks_why_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[NodeIdentity] = []

    def noted(node: NodeIdentity) -> str:
        said.append(node)
        return "broker/7"

    monkeypatch.setattr(NodeIdentity, "__str__", noted)
    access = AccessControl(SharedSecretAuthentication(None), authorizer=Authorizer())

    broker = Caller(Identity("Broker:7", "token", NodeIdentity("broker", frozenset({7}))), "10.0.0.1")
    rights = access.rights(broker)
    assert rights.may_on_cluster("CLUSTER_ACTION")
    assert not said
    assert rights.grounds.newest()() == "is broker/7"
