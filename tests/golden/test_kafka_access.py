"""Quotas, users and ACLs of captured clusters: described as the clusters themselves described them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.access.acls import decide_create_acls, describe_acls
from quorate.controller.access.client_quotas import describe_client_quotas
from quorate.controller.access.scram_credentials import describe_user_scram_credentials
from quorate.controller.protocol.acls import AclFilter, CreateAclsRequest
from quorate.controller.protocol.quotas import DescribeClientQuotasRequest
from quorate.controller.protocol.scram import DescribeUserScramCredentialsRequest
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage

MOMENTS = ("static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1")


@pytest.fixture(params=MOMENTS)
def moment(request: pytest.FixtureRequest, kafka_data: Path) -> Path:
    directory: Path = kafka_data / request.param
    return directory


@pytest.fixture
def image(moment: Path) -> MetadataImage:
    return load_image(moment / "log")


@pytest.fixture
def expected(moment: Path) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((moment / "expected.json").read_text(encoding="utf-8"))
    return answers


def unordered(rows: Iterable[Any]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_quotas_are_described_as_the_cluster_did(image: MetadataImage, expected: dict[str, Any]) -> None:
    described = describe_client_quotas(image, DescribeClientQuotasRequest(components=[]))
    rows = [
        {
            "entity": {part.entity_type: part.entity_name for part in entry.entity},
            "values": {quota.key: quota.value for quota in entry.values},
        }
        for entry in described.entries
    ]
    assert unordered(rows) == unordered(expected["client_quotas"])


def test_users_are_described_as_the_cluster_did(image: MetadataImage, expected: dict[str, Any]) -> None:
    described = describe_user_scram_credentials(image, DescribeUserScramCredentialsRequest())
    users = {result.user: unordered(i.model_dump() for i in result.credential_infos) for result in described.results}
    assert users == {user: unordered(rows) for user, rows in expected["scram"].items()}


def test_acls_are_described_as_the_cluster_did(image: MetadataImage, expected: dict[str, Any]) -> None:
    described = describe_acls(image, AclFilter())
    rows = [
        {
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "pattern_type": resource.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission": acl.permission_type,
        }
        for resource in described.resources
        for acl in resource.acls
    ]
    assert unordered(rows) == unordered(expected["acls"] or [])


def test_acls_of_the_cluster_are_there_already(image: MetadataImage, expected: dict[str, Any]) -> None:
    def no_id() -> Uuid:
        raise AssertionError("nothing is new")

    creations = [
        {
            **{name: row[name] for name in ("resource_type", "resource_name", "principal", "host", "operation")},
            "resource_pattern_type": row["pattern_type"],
            "permission_type": row["permission"],
        }
        for row in expected["acls"] or []
    ]
    decision = decide_create_acls(image, CreateAclsRequest.model_validate({"creations": creations}), no_id)
    assert not decision.has_records
