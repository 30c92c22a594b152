"""Configs of a request, resource by resource: who may see and change which (Kafka's ``ConfigHelper``, ``AclApis``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from quorate.controller.permissions.rights import CLUSTER_NAME, Rights
from quorate.controller.protocol.acls import AclOperation, AclResourceType
from quorate.controller.protocol.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResult,
    DescribeConfigsResource,
    DescribeConfigsResult,
    ReplacedConfigsResource,
    ResourceName,
    ResourceTypeName,
)
from quorate.metadata_log.errors import ErrorCode

R = TypeVar("R", AlterConfigsResource, ReplacedConfigsResource)


class _Failure(NamedTuple):
    """The outcome for a resource of one kind."""

    resource_type: AclResourceType
    code: ErrorCode
    #: In Kafka's words; the right that is missing follows.
    message: str


_OF_CLUSTER: Final = _Failure("CLUSTER", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
_FAILURES: Final[Mapping[ResourceTypeName, _Failure]] = {
    "TOPIC": _Failure("TOPIC", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    "GROUP": _Failure("GROUP", ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
}


def refused_description(rights: Rights, resource: DescribeConfigsResource) -> DescribeConfigsResult | None:
    """The outcome for a resource whose configs the caller may not see, be it there or not; None: he may."""
    failure = _failure(rights, "DESCRIBE_CONFIGS", resource)
    if failure is None:
        return None
    return DescribeConfigsResult(
        error_code=failure.code,
        error_message=failure.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def refused_changes(rights: Rights, resources: Sequence[R]) -> dict[int, AlterConfigsResourceResult]:
    """The outcomes, by place, of resources whose configs the caller may not change."""
    if rights.is_super:
        return {}
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    refused = {}
    for place, resource in enumerate(resources):
        failure = _failure(rights, "ALTER_CONFIGS", resource)
        # A resource that is named twice is refused for that, whoever asks.
        if failure is not None and counts[resource.resource_type, resource.resource_name] == 1:
            refused[place] = AlterConfigsResourceResult(
                error_code=failure.code,
                error_message=failure.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
    return refused


def _failure(rights: Rights, operation: AclOperation, resource: ResourceName) -> _Failure | None:
    failure = _FAILURES.get(resource.resource_type, _OF_CLUSTER)
    name = CLUSTER_NAME if failure is _OF_CLUSTER else resource.resource_name
    if rights.may(operation, failure.resource_type, name):
        return None
    on = f"the cluster ({CLUSTER_NAME})" if failure is _OF_CLUSTER else f"the {resource.resource_type.lower()}"
    return failure._replace(message=f"{failure.message} {rights.lacks(f'{operation} on {on}')}")
