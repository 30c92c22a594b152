"""The permission of a route: whom it lets through, and what it says to others."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from quorate.controller.access.acls import decide_create_acls
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.identity import NOBODY, Caller, Identity, NodeIdentity
from quorate.controller.permissions.permission import AsNode, ByItem, OnCluster, Open, Permission, SuperUser
from quorate.controller.permissions.rights import ALL_RIGHTS, Rights
from quorate.controller.protocol.acls import AclCreation, AclOperation, CreateAclsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image_parts import AclsImage
from tests.unit.controller.small_cluster import SmallCluster

ANA = Identity("User:ana", "token")
BROKER = Identity("Broker:11,12", "token", NodeIdentity("broker", frozenset({11, 12})))
CONTROLLER = Identity("Controller:11", "seal", NodeIdentity("controller", frozenset({11})))
AS_BROKER = AsNode("broker", "broker_id")


class Body(NamedTuple):
    """A request in the name of a broker."""

    broker_id: int


def rights(identity: Identity, *granted: tuple[str, AclOperation], is_super: bool = False) -> Rights:
    return Rights(Caller(identity, "10.0.0.9"), Authorizer().following(acls(*granted)), is_super)


def acls(*granted: tuple[str, AclOperation]) -> AclsImage:
    """What is granted on the cluster: principals and operations."""
    creations = [
        AclCreation(
            resource_type="CLUSTER",
            resource_name="kafka-cluster",
            principal=principal,
            operation=operation,
            permission_type="ALLOW",
        )
        for principal, operation in granted
    ]
    cluster = SmallCluster()
    ids = (bytes([number] * 16) for number in range(1, 100))
    cluster.commit(decide_create_acls(cluster.image, CreateAclsRequest(creations=creations), lambda: next(ids)))
    return cluster.image.acls


@pytest.mark.parametrize(
    ("permission", "who"),
    [
        (Open(), rights(NOBODY)),
        (ByItem("asks by itself"), rights(NOBODY)),
        (OnCluster("ALTER"), rights(ANA, ("User:ana", "ALTER"))),
        (OnCluster("CLUSTER_ACTION"), rights(BROKER)),
        (OnCluster("DESCRIBE", open_to="node"), rights(BROKER)),
        (OnCluster("DESCRIBE", open_to="node"), rights(CONTROLLER)),
        (OnCluster("DESCRIBE", open_to="controller"), rights(CONTROLLER)),
        (OnCluster("DESCRIBE", open_to="node"), rights(ANA, ("User:ana", "DESCRIBE"))),
        (AS_BROKER, rights(BROKER)),
        (AS_BROKER, rights(ANA, is_super=True)),
        (SuperUser(), rights(ANA, is_super=True)),
        *((permission, ALL_RIGHTS) for permission in (OnCluster("ALTER"), AS_BROKER, SuperUser())),
    ],
)
def test_permission_lets_those_through_who_have_it(permission: Permission, who: Rights) -> None:
    permission.check(who, Body(12))


@pytest.mark.parametrize(
    ("permission", "who", "says"),
    [
        (OnCluster("ALTER"), rights(ANA, ("User:ana", "DESCRIBE"), ("User:ben", "ALTER")), "User:ana needs ALTER"),
        (OnCluster("DESCRIBE"), rights(BROKER, ("Broker:11,12", "DESCRIBE")), "Broker:11,12 needs DESCRIBE"),
        (OnCluster("DESCRIBE"), rights(CONTROLLER), "Controller:11 needs DESCRIBE"),
        (OnCluster("DESCRIBE", open_to="node"), rights(ANA), "User:ana needs DESCRIBE"),
        (OnCluster("DESCRIBE", open_to="controller"), rights(BROKER), "Broker:11,12 needs DESCRIBE"),
        (OnCluster("DESCRIBE", open_to="controller"), rights(ANA), "User:ana needs DESCRIBE"),
        (OnCluster("CLUSTER_ACTION"), rights(ANA), "User:ana needs CLUSTER_ACTION"),
        (AS_BROKER, rights(ANA, ("User:ana", "CLUSTER_ACTION")), "User:ana is not a broker"),
        (AS_BROKER, rights(BROKER), "Broker:11,12 is not broker 13"),
        (AS_BROKER, rights(CONTROLLER), "Controller:11 is not a broker"),
        (SuperUser(), rights(ANA, ("User:ana", "ALTER")), "User:ana is not among access.super_users"),
    ],
)
def test_permission_refuses_others_and_says_who_lacks_what(permission: Permission, who: Rights, says: str) -> None:
    with pytest.raises(ApiError, match=says) as refused:
        permission.check(who, Body(13))
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_controller_is_no_broker_of_the_same_number() -> None:
    with pytest.raises(ApiError, match="Controller:11 is not a broker"):
        AS_BROKER.check(rights(CONTROLLER), Body(11))
