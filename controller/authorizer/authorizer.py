"""``Authorizer``: decides by the ACLs of one image, as Kafka's ``StandardAuthorizer`` does.

Pure and immutable: its answers depend on the image's ACLs and the settings only, so they are the same on every
controller at the same offset. ``following`` gives the authorizer of another image.

A super user may do everything. Else an ACL that denies wins over any that allows; where neither is found, an ACL on the
resource, whoever and whatever it is about, means no, and only without any the setting decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from quorate.controller.authorizer.acl_index import EVERYONE, AclIndex
from quorate.controller.authorizer.grants import Grant
from quorate.controller.authorizer.hosts import java_host
from quorate.controller.authorizer.operations import ALLOWING_BITS, EXACT_BITS, operation_names
from quorate.controller.authorizer.patterns import EVERYTHING, PREFIXED, PatternMap
from quorate.controller.protocol.acls import AclOperation, AclResourceType
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.views.kafka_names import ACL_RESOURCE_TYPES

_TYPE_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_RESOURCE_TYPES.items()}
#: Kafka asks for this name first when it is asked about some resource of a type (``Authorizer``).
_ANY_NAME: Final = "hardcode"
#: Of a pattern, in a reason.
_SHOWN_CHARS: Final = 256


class UnusablePrincipal(ApiError):
    """A client whose principal is the name that ACLs have for everyone."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST, f"The principal {EVERYONE} stands for everyone in ACLs and cannot be a client's."
        )


class UnspecificAction(QuorateError, ValueError):
    """A question about any operation or any resource type: these are for filters."""


class Authorizer:
    """The rights of all principals. Never changes."""

    __slots__ = ("_index", "_is_allowed_without_acl", "_super_users")

    def __init__(
        self,
        index: AclIndex | None = None,
        *,
        super_users: Iterable[str] = (),
        is_allowed_without_acl: bool = False,
    ) -> None:
        """An authorizer of no ACLs, or of those of an index.

        Args:
            super_users: principals as ``User:ana``.
            is_allowed_without_acl: the answer about resources that no ACL covers
                (Kafka's ``allow.everyone.if.no.acl.found``).
        """
        self._index = AclIndex() if index is None else index
        self._super_users = frozenset(super_users)
        self._is_allowed_without_acl = is_allowed_without_acl

    def following(self, acls: AclsImage) -> Authorizer:
        """The authorizer of other ACLs, itself if they are the same. Costs as much as what differs."""
        if acls is self._index.acls:
            return self
        return Authorizer(
            self._index.following(acls),
            super_users=self._super_users,
            is_allowed_without_acl=self._is_allowed_without_acl,
        )

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> bool:
        """Whether a client may do something to one resource, which need not exist.

        Args:
            principal: as ``User:ana``.
            host: the client's address.
            name: of the resource; ``kafka-cluster`` for a cluster.

        Raises:
            UnusablePrincipal: it is ``User:*``, and no super user.
        """
        if principal in self._super_users:
            return True
        type_id = _TYPE_IDS[resource_type]
        denied = allowed = 0
        for patterns in self._subjects(type_id, principal, host):
            for grant in patterns.covering(name):
                denied |= grant.denied
                allowed |= grant.allowed
        if denied & EXACT_BITS[operation]:
            return False
        if allowed & ALLOWING_BITS[operation]:
            return True
        return self._is_allowed_without_acl and not self._index.is_covered(type_id, name)

    def reason(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str
    ) -> str:
        """The ACL, or the rule, by which ``authorize`` allowed this, in one line: of several ACLs one."""
        if principal in self._super_users:
            return "access.super_users"
        bits = ALLOWING_BITS[operation]
        for (_, who, where), patterns in self._index.named_subjects(
            _TYPE_IDS[resource_type], principal, java_host(host)
        ):
            for (pattern_type, pattern), grant in patterns.named_covering(name):
                if grant.allowed & bits:
                    kind = "PREFIXED " if pattern_type == PREFIXED else ""
                    named = operation_names(grant.allowed & bits)
                    return f"ALLOW {named} on {resource_type} {kind}{pattern[:_SHOWN_CHARS]} to {who} from {where}"
        return "access.allow_everyone_if_no_acl_found"

    def authorize_by_resource_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether a client may do something to some resource of a type (Kafka's method of this name).

        What is allowed counts only where nothing above it, on a prefix or for all, is denied; an ACL that allows it for
        all resources outweighs whatever is denied on some. Implied operations do not count.

        Raises:
            UnspecificAction: the operation or the type is ANY.
            UnusablePrincipal: as ``authorize``.
        """
        if "ANY" in (operation, resource_type):
            raise UnspecificAction(f"{operation} on {resource_type}: ANY cannot be asked about")
        if self.authorize(principal, host, operation, resource_type, _ANY_NAME):
            return True
        bits = EXACT_BITS[operation]
        said = self._subjects(_TYPE_IDS[resource_type], principal, host)
        on_all = [grant for patterns in said if (grant := patterns.values.get(EVERYTHING)) is not None]
        if any(grant.denied & bits for grant in on_all):
            return False
        return any(grant.allowed & bits for grant in on_all) or any(
            _has_more_than_denied(patterns, said, bits) for patterns in said
        )

    def _subjects(self, type_id: int, principal: str, host: str) -> list[PatternMap[Grant]]:
        if principal == EVERYONE:
            raise UnusablePrincipal
        return self._index.subjects(type_id, principal, java_host(host))


def _has_more_than_denied(patterns: PatternMap[Grant], said: Iterable[PatternMap[Grant]], bits: int) -> bool:
    """Whether some pattern is allowed by ``patterns`` and not denied above by any of all that is said."""
    return any(
        patterns.values[pattern].allowed & bits
        and not any(grant.denied & bits for other in said for grant in other.above(pattern))
        for pattern in patterns.values
    )
