"""Finds the ACLs that a filter matches (Kafka's ``AclBindingFilter``), without looking at every ACL if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from quorate.controller.protocol.acls import AclFilter
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.snapshots.views.kafka_names import ACL_OPERATIONS, ACL_RESOURCE_TYPES, PATTERN_TYPES, PERMISSIONS

#: The literal name of all resources of a type.
WILDCARD: Final = "*"

#: The numbers of Kafka's names in records.
RESOURCE_TYPE_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_RESOURCE_TYPES.items()}
PATTERN_TYPE_IDS: Final[Mapping[str, int]] = {name: number for number, name in PATTERN_TYPES.items()}
OPERATION_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_OPERATIONS.items()}
PERMISSION_IDS: Final[Mapping[str, int]] = {name: number for number, name in PERMISSIONS.items()}

#: The number of ANY in all of them.
_ANY_ID: Final = 1
_MATCH: Final = "MATCH"
_PREFIXED: Final = PATTERN_TYPE_IDS["PREFIXED"]
#: ACLs that the filters of one request may match: they may overlap, and each lists what it matched.
_MATCHES_MAX: Final = 10 * RECORDS_PER_OPERATION_MAX
#: ACLs that may be looked at for one request, which is a turn of the loop: a filter without a name or a principal looks
#: at all of them.
_LOOKS_MAX: Final = 100 * RECORDS_PER_OPERATION_MAX


class Acls:
    """All ACLs, to be asked for by several filters. Indexes are made when a filter first needs them."""

    def __init__(self, entries: Iterable[AccessControlEntryRecord]) -> None:
        self._all = list(entries)

    def candidates(self, wanted: AclFilter) -> Sequence[AccessControlEntryRecord]:
        """Those that must be looked at for a filter, in no particular order."""
        name = wanted.resource_name_filter
        if name is None:
            principal = wanted.principal_filter
            return self._all if principal is None else self._by_principal.get(principal, ())
        if wanted.pattern_type_filter != _MATCH:
            return self._by_name.get(name, ())
        names = {WILDCARD, *(name[:end] for end in range(len(name) + 1))}
        return [entry for each in names for entry in self._by_name.get(each, ())]

    @cached_property
    def _by_name(self) -> dict[str, list[AccessControlEntryRecord]]:
        return _grouped(self._all, lambda entry: entry.resource_name)

    @cached_property
    def _by_principal(self) -> dict[str, list[AccessControlEntryRecord]]:
        return _grouped(self._all, lambda entry: entry.principal)


def _grouped(
    entries: Iterable[AccessControlEntryRecord], key: Callable[[AccessControlEntryRecord], str]
) -> dict[str, list[AccessControlEntryRecord]]:
    groups: dict[str, list[AccessControlEntryRecord]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def matches(
    entries: Iterable[AccessControlEntryRecord], filters: Iterable[AclFilter]
) -> Iterator[list[AccessControlEntryRecord]]:
    """The ACLs that each filter means, filter by filter.

    Raises:
        LimitExceeded: POLICY_VIOLATION, together they look at too many, which is known before any is looked at, or
            match too many.
    """
    acls, looks = Acls(entries), 0
    chosen: list[tuple[AclFilter, Sequence[AccessControlEntryRecord]]] = []
    for wanted in filters:
        candidates = acls.candidates(wanted)
        looks += len(candidates)
        _check_bound("look at", looks, _LOOKS_MAX)
        chosen.append((wanted, candidates))
    count = 0
    for wanted, candidates in chosen:
        found = matching(wanted, candidates)
        count += len(found)
        _check_bound("match", count, _MATCHES_MAX)
        yield found


def _check_bound(verb: str, count: int, bound: int) -> None:
    if count > bound:
        message = f"The filters together {verb} more than {bound} ACLs, where each filter counts for itself."
        raise LimitExceeded(message, ErrorCode.POLICY_VIOLATION)


def matching(wanted: AclFilter, entries: Iterable[AccessControlEntryRecord]) -> list[AccessControlEntryRecord]:
    """Those of the ACLs that a filter means, in their order."""
    type_id, operation_id, permission_id = (
        ids[name]
        for name, ids in (
            (wanted.resource_type_filter, RESOURCE_TYPE_IDS),
            (wanted.operation, OPERATION_IDS),
            (wanted.permission_type, PERMISSION_IDS),
        )
    )
    principal, host, has_pattern = wanted.principal_filter, wanted.host_filter, _pattern_condition(wanted)
    return [
        entry
        for entry in entries
        if (host is None or entry.host == host)
        and (principal is None or entry.principal == principal)
        and (type_id == _ANY_ID or entry.resource_type == type_id)
        and (operation_id == _ANY_ID or entry.operation == operation_id)
        and (permission_id == _ANY_ID or entry.permission_type == permission_id)
        and has_pattern(entry)
    ]


def _pattern_condition(wanted: AclFilter) -> Callable[[AccessControlEntryRecord], bool]:
    name, pattern = wanted.resource_name_filter, wanted.pattern_type_filter
    if pattern == _MATCH and name is not None:
        return lambda entry: (
            name.startswith(entry.resource_name)
            if entry.pattern_type == _PREFIXED
            else entry.resource_name in (name, WILDCARD)
        )
    pattern_id = _ANY_ID if pattern == _MATCH else PATTERN_TYPE_IDS[pattern]
    return lambda entry: pattern_id in (_ANY_ID, entry.pattern_type) and name in (None, entry.resource_name)
