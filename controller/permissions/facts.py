"""The facts that a change goes by: who may be told them."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.permissions.configs import refused_description
from quorate.controller.permissions.rights import Rights
from quorate.controller.protocol.configs import DescribeConfigsResource, ResourceName
from quorate.metadata_log.errors import ApiError

#: In the words of docs/security.md.
FACTS_RULE: Final = (
    "DESCRIBE on Cluster; for configs DESCRIBE_CONFIGS on each Topic or Group; on Cluster for others, for labels "
    "and for quotas"
)


def need_facts(rights: Rights, change: PlannedChange) -> None:
    """Refuse a caller that may not be told all that a change goes by.

    Raises:
        ApiError: CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
    """
    rights.need_on_cluster("DESCRIBE")
    if change.alter_labels is not None or change.alter_client_quotas is not None:
        rights.need_on_cluster("DESCRIBE_CONFIGS")
    for request in (change.incremental_alter_configs, change.alter_configs):
        for resource in () if request is None else request.resources:
            _need_configs(rights, resource)


def _need_configs(rights: Rights, resource: ResourceName) -> None:
    wanted = DescribeConfigsResource(resource_type=resource.resource_type, resource_name=resource.resource_name)
    refused = refused_description(rights, wanted)
    if refused is not None:
        raise ApiError(refused.error_code, refused.error_message or refused.error_code.name)
