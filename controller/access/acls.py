"""ACLs: creation, removal and description (Kafka's ``AclControlManager`` and ``AclApis``).

Who may do what by them, ``controller.authorizer`` says; brokers decide by the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from quorate.controller.access.acl_bindings import binding_of, present_bindings, wanted_binding
from quorate.controller.access.acl_filters import matches, matching
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol.acls import (
    AclCreation,
    AclCreationResult,
    AclFilter,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsResource,
    DescribeAclsResponse,
    DescribedAcl,
    MatchingAcl,
)
from quorate.controller.protocol.limits import check_record_count
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.kafka_names import ACL_OPERATIONS, ACL_RESOURCE_TYPES, PATTERN_TYPES, PERMISSIONS, name_of

#: The only resource of its type.
_CLUSTER_NAME: Final = "kafka-cluster"
#: Resource type, name and pattern type of it.
_Pattern = tuple[int, str, int]


# --- creation ----------------------------------------------------------------------------------------


def decide_create_acls(
    image: MetadataImage, request: CreateAclsRequest, new_id: Callable[[], Uuid]
) -> Decision[CreateAclsResponse]:
    """Create ACLs, each with its own outcome; one that is there already is not written again.

    Args:
        new_id: random ids for the new ones.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    present = present_bindings(image.acls.entries.values(), request.creations)
    records: list[VersionedRecord] = []
    results: list[AclCreationResult] = []
    for creation in request.creations:
        try:
            _check(creation)
        except ApiError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.message))
            continue
        binding = wanted_binding(creation)
        if binding not in present:
            present.add(binding)
            records.append(VersionedRecord(AccessControlEntryRecord(_unused_id(image, new_id), *binding), 0))
        results.append(AclCreationResult())
    check_record_count(len(records))
    return Decision(records, CreateAclsResponse(results=results))


def _unused_id(image: MetadataImage, new_id: Callable[[], Uuid]) -> Uuid:
    while (made := new_id()) in image.acls.entries:
        continue
    return made


def _check(creation: AclCreation) -> None:
    problem = None
    if creation.resource_type == "CLUSTER" and creation.resource_name != _CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {_CLUSTER_NAME}"
    elif not creation.resource_name:
        problem = "Invalid empty resource name"
    elif creation.resource_type == "ANY":
        problem = "Invalid resourceType ANY"
    elif creation.resource_pattern_type not in ("LITERAL", "PREFIXED"):
        problem = f"Invalid patternType {creation.resource_pattern_type}"
    elif creation.operation == "ANY":
        problem = "Invalid operation ANY"
    elif creation.permission_type == "ANY":
        problem = "Invalid permissionType ANY"
    elif ":" not in creation.principal:
        problem = (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


# --- removal -----------------------------------------------------------------------------------------


def decide_delete_acls(image: MetadataImage, request: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Remove the ACLs that filters mean; one that several filters mean is removed once.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write, and what ``matches`` refuses.
    """
    removed: dict[Uuid, None] = {}
    results = []
    for matched in matches(image.acls.entries.values(), request.filters):
        found = sorted(matched, key=binding_of)
        removed.update((entry.id, None) for entry in found)
        check_record_count(len(removed))
        results.append(DeleteAclsFilterResult(matching_acls=[_matching(entry) for entry in found]))
    records = [VersionedRecord(RemoveAccessControlEntryRecord(acl_id), 0) for acl_id in removed]
    return Decision(records, DeleteAclsResponse(filter_results=results))


def _matching(entry: AccessControlEntryRecord) -> MatchingAcl:
    return MatchingAcl(
        resource_type=name_of(ACL_RESOURCE_TYPES, entry.resource_type),
        resource_name=entry.resource_name,
        pattern_type=name_of(PATTERN_TYPES, entry.pattern_type),
        principal=entry.principal,
        host=entry.host,
        operation=name_of(ACL_OPERATIONS, entry.operation),
        permission_type=name_of(PERMISSIONS, entry.permission_type),
    )


# --- description -------------------------------------------------------------------------------------


def describe_acls(image: MetadataImage, wanted: AclFilter) -> DescribeAclsResponse:
    """The ACLs that a filter means, by resource pattern."""
    found = sorted(matching(wanted, image.acls.entries.values()), key=binding_of)
    return DescribeAclsResponse(resources=[_resource(*group) for group in groupby(found, _pattern)])


def _pattern(entry: AccessControlEntryRecord) -> _Pattern:
    return entry.resource_type, entry.resource_name, entry.pattern_type


def _resource(pattern: _Pattern, entries: Iterable[AccessControlEntryRecord]) -> DescribeAclsResource:
    resource_type, resource_name, pattern_type = pattern
    return DescribeAclsResource(
        resource_type=name_of(ACL_RESOURCE_TYPES, resource_type),
        resource_name=resource_name,
        pattern_type=name_of(PATTERN_TYPES, pattern_type),
        acls=[
            DescribedAcl(
                principal=entry.principal,
                host=entry.host,
                operation=name_of(ACL_OPERATIONS, entry.operation),
                permission_type=name_of(PERMISSIONS, entry.permission_type),
            )
            for entry in entries
        ],
    )
