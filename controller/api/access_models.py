"""Parameters of the routes of client quotas, SCRAM credentials and ACLs."""

from __future__ import annotations

from quorate.controller.api.models import ReadParameters
from quorate.controller.protocol.acls import AclOperation, AclPatternType, AclPermissionType, AclResourceType
from quorate.controller.protocol.quotas import QuotaMatch
from quorate.controller.protocol.types import Name


class QuotaParameters(ReadParameters):
    """The entities wanted: those that meet all that is given; without anything all of them."""

    user: Name | None = None
    """Name of the user; with it `user_match` is `EXACT`."""
    user_match: QuotaMatch | None = None
    """`EXACT`: the one named; `DEFAULT`: the default of all users; `ANY`: either."""
    client_id: Name | None = None
    """The client id; with it `client_id_match` is `EXACT`."""
    client_id_match: QuotaMatch | None = None
    """As `user_match`."""
    ip: Name | None = None
    """The address; with it `ip_match` is `EXACT`. Not together with users and client ids."""
    ip_match: QuotaMatch | None = None
    """As `user_match`."""
    strict: bool = False
    """Only entities that have no other types than those that are asked for."""


class UserParameters(ReadParameters):
    """The users whose credentials are wanted."""

    user: Name | None = None
    """Name of the user; without it everybody's."""


class AclParameters(ReadParameters):
    """The ACLs wanted; a field that is `ANY` or missing is not looked at."""

    resource_type: AclResourceType = "ANY"
    """Type of the resource."""
    resource_name: Name | None = None
    """Name of the resource, prefix or `*`, as the pattern type takes it."""
    pattern_type: AclPatternType = "ANY"
    """`LITERAL` and `PREFIXED` ACLs of that name; `MATCH`: all that apply to a resource of that name."""
    principal: Name | None = None
    """As `User:ana`."""
    host: Name | None = None
    """As it was given with the ACL; `*` is the one that means every host."""
    operation: AclOperation = "ANY"
    """What is let or kept from being done."""
    permission_type: AclPermissionType = "ANY"
    """`ALLOW` or `DENY`."""
