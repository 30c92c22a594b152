"""ACLs: creation, removal and description by filter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from random import Random
from typing import Any

import pytest

from quorate.controller.access.acl_filters import Acls, matching
from quorate.controller.access.acls import decide_create_acls, decide_delete_acls, describe_acls
from quorate.controller.protocol.acls import AclFilter, CreateAclsRequest, DeleteAclsRequest, DeleteAclsResponse
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import AccessControlEntryRecord, Record, RemoveAccessControlEntryRecord
from tests.unit.controller.access_stage import AccessStage

TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4


def ids() -> Iterator[Uuid]:
    return (number.to_bytes(16, "big") for number in count(100))


class AclStage(AccessStage):
    """With ids that count up."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = ids()

    async def create(self, *creations: dict[str, Any]) -> tuple[list[tuple[str, str | None]], list[Record]]:
        asked = CreateAclsRequest.model_validate({"creations": list(creations)})
        reply, records = await self.write(lambda image: decide_create_acls(image, asked, lambda: next(self.ids)))
        return [(result.error_code.name, result.error_message) for result in reply.results], records

    async def delete(self, *filters: dict[str, Any]) -> tuple[DeleteAclsResponse, list[Record]]:
        asked = DeleteAclsRequest.model_validate({"filters": list(filters)})
        return await self.write(lambda image: decide_delete_acls(image, asked))

    def names(self, **wanted: Any) -> list[str]:
        """What a filter means, shortly."""
        resources = describe_acls(self.image, AclFilter.model_validate(wanted)).resources
        return [
            f"{r.resource_type} {r.pattern_type} {r.resource_name} {a.principal}" for r in resources for a in r.acls
        ]


def acl(name: str = "orders", **fields: Any) -> dict[str, Any]:
    made = {"resource_type": "TOPIC", "principal": "User:ana", "operation": "READ", "permission_type": "ALLOW"}
    return {"resource_name": name, **made, **fields}


@pytest.fixture
def stage() -> AclStage:
    return AclStage()


# --- creation ------------------------------------------------------------------------------------------


async def test_acls_are_created_under_ids_from_outside(stage: AclStage) -> None:
    outcomes, records = await stage.create(
        acl(),
        acl(
            "tx-",
            resource_type="TRANSACTIONAL_ID",
            resource_pattern_type="PREFIXED",
            operation="WRITE",
            host="10.0.0.1",
        ),
        acl("kafka-cluster", resource_type="CLUSTER", operation="ALTER", permission_type="DENY", principal="User:*"),
    )
    assert outcomes == [("NONE", None)] * 3
    made = [number.to_bytes(16, "big") for number in (100, 101, 102)]
    assert records == [
        AccessControlEntryRecord(made[0], TOPIC, "orders", LITERAL, "User:ana", "*", 3, 3),
        AccessControlEntryRecord(made[1], 5, "tx-", PREFIXED, "User:ana", "10.0.0.1", 4, 3),
        AccessControlEntryRecord(made[2], CLUSTER, "kafka-cluster", LITERAL, "User:*", "*", 7, 2),
    ]
    stage.check_checkpoint()


async def test_acl_that_is_there_is_a_success_and_not_written(stage: AclStage) -> None:
    await stage.create(acl())
    outcomes, records = await stage.create(acl(), acl("x"), acl("x"), acl(host="h"))
    assert outcomes == [("NONE", None)] * 4
    assert [record.resource_name for record in records] == ["x", "orders"]  # type: ignore[union-attr]
    assert len(stage.image.acls.entries) == 3


async def test_id_that_is_taken_is_not_given_again(stage: AclStage) -> None:
    await stage.create(acl("a"))
    stage.ids = ids()
    await stage.create(acl("b"))
    assert len(stage.image.acls.entries) == 2


async def test_acls_of_one_request_have_their_own_outcomes(stage: AclStage) -> None:
    outcomes, records = await stage.create(acl("a"), acl(""), acl("b"))
    assert [code for code, _ in outcomes] == ["NONE", "INVALID_REQUEST", "NONE"]
    assert len(records) == 2


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": "CLUSTER"}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_type": "CLUSTER", "resource_name": ""}, "The only valid name for the CLUSTER resource"),
        ({"resource_type": "ANY"}, "Invalid resourceType ANY"),
        ({"resource_pattern_type": "ANY"}, "Invalid patternType ANY"),
        ({"resource_pattern_type": "MATCH"}, "Invalid patternType MATCH"),
        ({"operation": "ANY"}, "Invalid operation ANY"),
        ({"permission_type": "ANY"}, "Invalid permissionType ANY"),
        ({"principal": "ana"}, "Could not parse principal from `ana` (no colon is present"),
        ({"principal": ""}, "Could not parse principal from ``"),
    ],
)
async def test_acl_that_cannot_be_is_refused(stage: AclStage, fields: dict[str, Any], says: str) -> None:
    ((code, message),), records = await stage.create({**acl(), **fields})
    assert code == "INVALID_REQUEST"
    assert says in (message or "")
    assert records == []


# --- filters -------------------------------------------------------------------------------------------


@pytest.fixture
async def filled(stage: AclStage) -> AclStage:
    await stage.create(
        acl("*"),
        acl("orders"),
        acl("orders", principal="User:bo", operation="WRITE", host="h", permission_type="DENY"),
        acl("ord", resource_pattern_type="PREFIXED"),
        acl("orders", resource_pattern_type="PREFIXED"),
        acl("payments", resource_pattern_type="PREFIXED"),
        acl("orders", resource_type="GROUP"),
    )
    return stage


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"resource_type_filter": "GROUP"}, ["GROUP LITERAL orders User:ana"]),
        ({"resource_name_filter": "orders", "resource_type_filter": "TOPIC", "pattern_type_filter": "LITERAL"},
         ["TOPIC LITERAL orders User:ana", "TOPIC LITERAL orders User:bo"]),
        ({"resource_name_filter": "orders", "resource_type_filter": "TOPIC"},
         ["TOPIC LITERAL orders User:ana", "TOPIC LITERAL orders User:bo", "TOPIC PREFIXED orders User:ana"]),
        ({"resource_name_filter": "orders", "pattern_type_filter": "PREFIXED"}, ["TOPIC PREFIXED orders User:ana"]),
        ({"resource_name_filter": "orders", "pattern_type_filter": "MATCH", "resource_type_filter": "TOPIC"},
         ["TOPIC LITERAL * User:ana", "TOPIC PREFIXED ord User:ana", "TOPIC LITERAL orders User:ana",
          "TOPIC LITERAL orders User:bo", "TOPIC PREFIXED orders User:ana"]),
        ({"resource_name_filter": "ordinary", "pattern_type_filter": "MATCH"},
         ["TOPIC LITERAL * User:ana", "TOPIC PREFIXED ord User:ana"]),
        ({"resource_name_filter": "*", "pattern_type_filter": "LITERAL"}, ["TOPIC LITERAL * User:ana"]),
        ({"resource_name_filter": "ord", "pattern_type_filter": "LITERAL"}, []),
        ({"principal_filter": "User:bo"}, ["TOPIC LITERAL orders User:bo"]),
        ({"host_filter": "h"}, ["TOPIC LITERAL orders User:bo"]),
        ({"operation": "WRITE"}, ["TOPIC LITERAL orders User:bo"]),
        ({"permission_type": "DENY"}, ["TOPIC LITERAL orders User:bo"]),
        ({"operation": "ALL"}, []),
        ({"principal_filter": "User:bo", "permission_type": "ALLOW"}, []),
        ({"resource_name_filter": ""}, []),
    ],
)  # fmt: skip
async def test_filter_means_what_kafkas_means(filled: AclStage, wanted: dict[str, Any], found: list[str]) -> None:
    assert filled.names(**wanted) == found
    before = len(filled.image.acls.entries)
    reply, records = await filled.delete(wanted)
    assert len(reply.filter_results[0].matching_acls) == len(records) == len(found)
    assert len(filled.image.acls.entries) == before - len(found)
    assert filled.names(**wanted) == []
    filled.check_checkpoint()


def test_index_finds_what_a_look_at_every_acl_finds() -> None:
    drawn = Random(7)
    names, principals = ["", "*", "a", "ab", "abc", "b"], ["User:a", "User:b", "User:*"]
    entries = [
        AccessControlEntryRecord(
            number.to_bytes(16, "big"),
            drawn.choice([TOPIC, GROUP]),
            drawn.choice(names),
            drawn.choice([LITERAL, PREFIXED]),
            drawn.choice(principals),
            drawn.choice("*h"),
            operation=3,
            permission_type=3,
        )
        for number in range(300)
    ]
    acls = Acls(entries)
    for type_, name, pattern, principal, host in product(
        ("ANY", "TOPIC"),
        (None, *names, "abcd"),
        ("ANY", "MATCH", "LITERAL", "PREFIXED"),
        (None, *principals),
        (None, "h"),
    ):
        wanted = AclFilter.model_validate({
            "resource_type_filter": type_, "resource_name_filter": name, "pattern_type_filter": pattern,
            "principal_filter": principal, "host_filter": host,
        })  # fmt: skip
        found = matching(wanted, acls.candidates(wanted))
        assert sorted(entry.id for entry in found) == [entry.id for entry in matching(wanted, entries)], wanted


# --- removal -------------------------------------------------------------------------------------------


async def test_acl_that_several_filters_mean_is_removed_once(filled: AclStage) -> None:
    reply, records = await filled.delete({"principal_filter": "User:bo"}, {"operation": "WRITE"}, {"host_filter": "x"})
    assert [len(result.matching_acls) for result in reply.filter_results] == [1, 1, 0]
    assert len(records) == 1
    assert isinstance(records[0], RemoveAccessControlEntryRecord)
    assert reply.filter_results[0].matching_acls[0].model_dump() == {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:bo",
        "host": "h",
        "operation": "WRITE",
        "permission_type": "DENY",
    }


async def test_filter_without_conditions_removes_everything(filled: AclStage) -> None:
    await filled.delete({})
    assert len(filled.image.acls.entries) == 0


async def test_removal_of_too_many_is_refused_as_a_whole(stage: AclStage) -> None:
    await stage.create(*[acl(f"t{n}") for n in range(10_000)])
    await stage.create(acl("one more"))
    before = stage.image
    for wanted in ({}, {"resource_type_filter": "TOPIC", "host_filter": "*"}):
        with pytest.raises(LimitExceeded) as refused:
            await stage.delete(wanted)
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert stage.image is before
    await stage.delete({"resource_name_filter": "one more"})
    # All of them, named over and over again: the reply would be larger than any client wants.
    with pytest.raises(LimitExceeded, match="more than 100000 ACLs"):
        await stage.delete(*[{"host_filter": "*"}] * 11)
    with pytest.raises(LimitExceeded, match="look at more than 1000000 ACLs"):
        await stage.delete(*[{"host_filter": f"h{n}"} for n in range(101)])
    assert len(stage.image.acls.entries) == 10_000
    await stage.delete({"principal_filter": "User:ana"}, *[{"host_filter": f"h{n}"} for n in range(99)])
    assert len(stage.image.acls.entries) == 0
