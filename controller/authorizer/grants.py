"""The sum of the ACLs that one principal from one host has on one pattern of names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from quorate.controller.authorizer.operations import operation_bit
from quorate.metadata_log.records.records import AccessControlEntryRecord

_ALLOW: Final = 3
#: Whether an ACL allows, and the bit of its operation.
_Said = tuple[bool, int]


class Grant(NamedTuple):
    """Operations as bits. Equal for equal ACLs, in whatever order they came."""

    denied: int = 0
    allowed: int = 0
    #: ACLs that say what another one says already, by how many: a controller makes none, a log may hold some.
    repeated: Mapping[_Said, int] = MappingProxyType({})

    @property
    def is_empty(self) -> bool:
        """Whether no ACL is left."""
        return not (self.denied or self.allowed)

    def plus(self, entry: AccessControlEntryRecord) -> Grant:
        """With one more ACL. A permission that is not ALLOW denies, as in Kafka."""
        is_allowing, bit = said = _said(entry)
        if (self.allowed if is_allowing else self.denied) & bit:
            return self._replace(repeated={**self.repeated, said: self.repeated.get(said, 0) + 1})
        return self._flipped(said)

    def minus(self, entry: AccessControlEntryRecord) -> Grant:
        """Without one ACL that is among them."""
        said = _said(entry)
        more = self.repeated.get(said, 0)
        if not more:
            return self._flipped(said)
        fewer = {**self.repeated, said: more - 1}
        return self._replace(repeated={other: count for other, count in fewer.items() if count})

    def _flipped(self, said: _Said) -> Grant:
        is_allowing, bit = said
        return self._replace(allowed=self.allowed ^ bit) if is_allowing else self._replace(denied=self.denied ^ bit)


def _said(entry: AccessControlEntryRecord) -> _Said:
    return entry.permission_type == _ALLOW, operation_bit(entry.operation)
