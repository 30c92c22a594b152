"""ACLs: creation, removal by filter, description by filter (Kafka's APIs 30, 31, 29)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from quorate.controller.protocol.types import ITEMS_MAX, ItemResult, Message, Name

#: Filters of one request: one may match every ACL there is, and each has its own list in the reply.
_FILTERS_MAX: Final = 1_000

# ANY and MATCH are for filters; an ACL that says so is refused for itself.
AclResourceType = Literal["ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
AclPatternType = Literal["ANY", "MATCH", "LITERAL", "PREFIXED"]
AclOperation = Literal[
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
AclPermissionType = Literal["ANY", "DENY", "ALLOW"]


class AclCreation(Message):
    """An ACL: whom it lets do what, or keeps from it, on which resources."""

    resource_type: AclResourceType
    #: "*": every resource of the type, where the pattern is LITERAL.
    resource_name: Name
    #: LITERAL or PREFIXED: the name itself, or every name that begins so.
    resource_pattern_type: AclPatternType = "LITERAL"
    #: As "User:ana"; "User:*" is everybody.
    principal: Name
    #: An address; "*" is every host.
    host: Name = "*"
    operation: AclOperation
    permission_type: AclPermissionType


class CreateAclsRequest(Message):
    """ACLs that are to be; each may fail for itself, and one that is there already is a success."""

    creations: Annotated[list[AclCreation], Field(max_length=ITEMS_MAX)]


class AclCreationResult(ItemResult):
    """Whether an ACL is there now."""


class CreateAclsResponse(Message):
    """In the order of the request."""

    results: list[AclCreationResult]


class AclFilter(Message):
    """The ACLs that are meant; a field that is ANY or null is not looked at."""

    resource_type_filter: AclResourceType = "ANY"
    resource_name_filter: Name | None = None
    #: MATCH: whatever applies to the resource with this name, so also prefixes of it and "*".
    pattern_type_filter: AclPatternType = "ANY"
    principal_filter: Name | None = None
    host_filter: Name | None = None
    operation: AclOperation = "ANY"
    permission_type: AclPermissionType = "ANY"


class DeleteAclsRequest(Message):
    """Filters of the ACLs that are to go."""

    filters: Annotated[list[AclFilter], Field(max_length=_FILTERS_MAX)]


class MatchingAcl(Message):
    """An ACL."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


class DeleteAclsFilterResult(ItemResult):
    """The ACLs that one filter removed. An ACL that several filters match stands in the result of each."""

    matching_acls: list[MatchingAcl]


class DeleteAclsResponse(Message):
    """In the order of the request."""

    filter_results: list[DeleteAclsFilterResult]


class DescribedAcl(Message):
    """An ACL of one resource pattern."""

    principal: str
    host: str
    operation: str
    permission_type: str


class DescribeAclsResource(Message):
    """The ACLs of one resource pattern."""

    resource_type: str
    resource_name: str
    pattern_type: str
    acls: list[DescribedAcl]


class DescribeAclsResponse(Message):
    """By resource type, name and pattern."""

    resources: list[DescribeAclsResource]
