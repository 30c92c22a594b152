"""The facts of a change are told, and compared, for whoever may read them: others would find out by guessing."""

from __future__ import annotations

import pytest

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.permissions.facts import need_facts
from quorate.controller.protocol import CreatePartitionsRequest, CreatePartitionsTopic
from quorate.controller.protocol.acls import AclOperation
from quorate.controller.protocol.configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorate.controller.protocol.labels import AlterLabelsRequest
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.unit.controller.permissions.test_permissions import ANA, rights

_GROWTH = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=3)])
_RESOURCE = AlterConfigsResource(
    resource_type="TOPIC", resource_name="orders", configs=[AlterableConfig(name="retention.ms", value="1")]
)
_CONFIGS = IncrementalAlterConfigsRequest(resources=[_RESOURCE])


@pytest.mark.parametrize(
    ("change", "granted", "lacks"),
    [
        (PlannedChange(create_partitions=_GROWTH), (), "needs DESCRIBE on the cluster"),
        (
            PlannedChange(alter_labels=AlterLabelsRequest(changes=[])),
            ("DESCRIBE",),
            "needs DESCRIBE_CONFIGS on the cluster",
        ),
        (PlannedChange(incremental_alter_configs=_CONFIGS), ("DESCRIBE",), "needs DESCRIBE_CONFIGS on the topic"),
    ],
    ids=["growth", "labels", "configs"],
)
def test_facts_are_for_who_may_read_them(change: PlannedChange, granted: tuple[AclOperation, ...], lacks: str) -> None:
    with pytest.raises(ApiError, match=lacks):
        need_facts(rights(ANA, *(("User:ana", operation) for operation in granted)), change)
    need_facts(rights(ANA, is_super=True), change)


def _configs(kind: str, name: str, config: str) -> dict[str, object]:
    resource = {"resource_type": kind, "resource_name": name, "configs": [{"name": config, "value": "1"}]}
    return {"resources": [resource]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            PlannedChange(alter_user_scram_credentials=AlterUserScramCredentialsRequest(deletions=[], upsertions=[])),
            "credentials",
        ),
        (
            PlannedChange.model_validate({"incremental_alter_configs": _configs("BROKER", "1", "ssl.key.password")}),
            "'ssl.key.password'",
        ),
        (
            PlannedChange.model_validate({"incremental_alter_configs": _configs("TOPIC", "orders", "nobody.knows")}),
            "'nobody.knows'",
        ),
        (
            PlannedChange.model_validate({"alter_configs": _configs("BROKER", "1", "log.cleaner.threads")}),
            "replaced configs",
        ),
    ],
    ids=["credentials", "secret", "unknown name", "all that is set"],
)
def test_digests_of_secrets_are_for_super_users(change: PlannedChange, named: str) -> None:
    """A digest without a salt is compared with guesses offline, and as a condition it answers them online."""
    operations: tuple[AclOperation, ...] = ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "ALTER_CONFIGS")
    granted = rights(ANA, *(("User:ana", operation) for operation in operations))
    with pytest.raises(ApiError, match=f"User:ana needs to be a super user .*{named}.*without a plan") as refused:
        need_facts(granted, change)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    need_facts(rights(ANA, is_super=True), change)


def test_growth_is_told_to_who_may_describe_the_cluster() -> None:
    need_facts(rights(ANA, ("User:ana", "DESCRIBE")), PlannedChange(create_partitions=_GROWTH))
