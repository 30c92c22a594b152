"""ACLs of an image out of short rows: resource type, pattern, name, principal, host, operation, permission."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.controller.access.acl_filters import OPERATION_IDS, PATTERN_TYPE_IDS, PERMISSION_IDS, RESOURCE_TYPE_IDS
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.maps.persistent_map import PersistentMap

AclRow = tuple[str, str, str, str, str, str, str]


def acl(
    name: str = "orders",
    *,
    of: str = "TOPIC",
    pattern: str = "LITERAL",
    who: str = "User:ana",
    host: str = "*",
    what: str = "READ",
    permission: str = "ALLOW",
) -> AclRow:
    return of, pattern, name, who, host, what, permission


def entry(number: int, row: AclRow) -> AccessControlEntryRecord:
    """The record of an ACL, with an id of this number."""
    of, pattern, name, who, host, what, permission = row
    return AccessControlEntryRecord(
        number.to_bytes(16, "big"),
        RESOURCE_TYPE_IDS[of],
        name,
        PATTERN_TYPE_IDS[pattern],
        who,
        host,
        OPERATION_IDS[what],
        PERMISSION_IDS[permission],
    )


def acls_image(rows: Iterable[AclRow]) -> AclsImage:
    """An image of these."""
    entries = [entry(number, row) for number, row in enumerate(rows)]
    return AclsImage(PersistentMap({each.id: each for each in entries}))
