"""The contents of ACLs (Kafka's ``AclBinding``), and those of them that are there already."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.controller.access.acl_filters import (
    OPERATION_IDS,
    PATTERN_TYPE_IDS,
    PERMISSION_IDS,
    RESOURCE_TYPE_IDS,
)
from quorate.controller.protocol.acls import AclCreation
from quorate.metadata_log.records.records import AccessControlEntryRecord

#: The content of an ACL: all fields of its record but the id.
AclBinding = tuple[int, str, int, str, str, int, int]


def wanted_binding(creation: AclCreation) -> AclBinding:
    """The content of an ACL that is to be."""
    return (
        RESOURCE_TYPE_IDS[creation.resource_type],
        creation.resource_name,
        PATTERN_TYPE_IDS[creation.resource_pattern_type],
        creation.principal,
        creation.host,
        OPERATION_IDS[creation.operation],
        PERMISSION_IDS[creation.permission_type],
    )


def binding_of(entry: AccessControlEntryRecord) -> AclBinding:
    """The content of an ACL."""
    return (
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def present_bindings(entries: Iterable[AccessControlEntryRecord], creations: Iterable[AclCreation]) -> set[AclBinding]:
    """Those contents of ACLs to be that an ACL has already.

    It looks at every entry, in a turn of the loop: of those of other principals or resources at no more than that.
    """
    wanted = {wanted_binding(creation) for creation in creations}
    names, principals = {binding[1] for binding in wanted}, {binding[3] for binding in wanted}
    return {
        binding
        for entry in entries
        if entry.principal in principals and entry.resource_name in names and (binding := binding_of(entry)) in wanted
    }
