"""Which ACLs a filter means (Kafka's ``AclBindingFilter``), without looking at every ACL where that can be helped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from controller.protocol_acls import AclFilter
from metadata_log.records import AccessControlEntryRecord
from snapshots.kafka_names import ACL_OPERATIONS, ACL_RESOURCE_TYPES, PATTERN_TYPES, PERMISSIONS

#: The literal name of all resources of a type.
WILDCARD: Final = "*"

#: The numbers of Kafka's names in records.
RESOURCE_TYPE_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_RESOURCE_TYPES.items()}
PATTERN_TYPE_IDS: Final[Mapping[str, int]] = {name: number for number, name in PATTERN_TYPES.items()}
OPERATION_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_OPERATIONS.items()}
PERMISSION_IDS: Final[Mapping[str, int]] = {name: number for number, name in PERMISSIONS.items()}

_ANY: Final = "ANY"
_MATCH: Final = "MATCH"
_PREFIXED: Final = PATTERN_TYPE_IDS["PREFIXED"]


class AclsByName:
    """ACLs by the names and principals that filters ask for."""

    def __init__(self, entries: Iterable[AccessControlEntryRecord]) -> None:
        self._all = list(entries)
        self._by_name: dict[str, list[AccessControlEntryRecord]] = {}
        self._by_principal: dict[str, list[AccessControlEntryRecord]] = {}
        for entry in self._all:
            self._by_name.setdefault(entry.resource_name, []).append(entry)
            self._by_principal.setdefault(entry.principal, []).append(entry)

    def matching(self, wanted: AclFilter) -> list[AccessControlEntryRecord]:
        """The ACLs that a filter means, in no particular order."""
        return [entry for entry in self._candidates(wanted) if matches(wanted, entry)]

    def _candidates(self, wanted: AclFilter) -> Iterable[AccessControlEntryRecord]:
        name = wanted.resource_name_filter
        if name is None:
            principal = wanted.principal_filter
            return self._all if principal is None else self._by_principal.get(principal, ())
        if wanted.pattern_type_filter != _MATCH:
            return self._by_name.get(name, ())
        names = {WILDCARD, *(name[:end] for end in range(len(name) + 1))}
        return [entry for each in names for entry in self._by_name.get(each, ())]


def matches(wanted: AclFilter, entry: AccessControlEntryRecord) -> bool:
    """Whether a filter means an ACL."""
    return (
        _is(wanted.resource_type_filter, RESOURCE_TYPE_IDS, entry.resource_type)
        and (wanted.principal_filter is None or wanted.principal_filter == entry.principal)
        and (wanted.host_filter is None or wanted.host_filter == entry.host)
        and _is(wanted.operation, OPERATION_IDS, entry.operation)
        and _is(wanted.permission_type, PERMISSION_IDS, entry.permission_type)
        and _matches_pattern(wanted, entry)
    )


def _is(wanted: str, ids: Mapping[str, int], found: int) -> bool:
    return wanted == _ANY or ids[wanted] == found


def _matches_pattern(wanted: AclFilter, entry: AccessControlEntryRecord) -> bool:
    name, pattern = wanted.resource_name_filter, wanted.pattern_type_filter
    if pattern != _MATCH:
        return _is(pattern, PATTERN_TYPE_IDS, entry.pattern_type) and name in (None, entry.resource_name)
    if name is None:
        return True
    if entry.pattern_type == _PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in (name, WILDCARD)
