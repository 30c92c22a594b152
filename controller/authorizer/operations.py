"""Operations as bits, so that what many ACLs say together is the bitwise or of what each says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.controller.protocol.acls import AclOperation
from quorate.snapshots.views.kafka_names import ACL_OPERATIONS

_IDS: Final[Mapping[str, int]] = {name: number for number, name in ACL_OPERATIONS.items()}

#: Operations whose ACLs allow another one too (``StandardAuthorizerData``): only those that allow, not those that deny.
_IMPLIED_BY: Final[Mapping[AclOperation, tuple[AclOperation, ...]]] = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}


def operation_bit(operation_id: int) -> int:
    """The bit of an operation by the number that it has in a record; a number that nobody knows has its own bit."""
    return 1 << (operation_id & 0xFF)  # the number is a signed byte


def operation_names(bits: int) -> str:
    """The operations of these bits, by their names."""
    return ", ".join(name for name, number in _IDS.items() if bits & operation_bit(number))


def _bits(*names: AclOperation) -> int:
    return sum(operation_bit(_IDS[name]) for name in names)


#: By operation: the bits of the ACLs that speak of just that one, and so of those that deny it.
EXACT_BITS: Final[Mapping[str, int]] = {name: _bits("ALL") | operation_bit(_IDS[name]) for name in _IDS}
#: By operation: the bits of the ACLs that allow it, be it by another operation that implies it.
ALLOWING_BITS: Final[Mapping[str, int]] = {
    **EXACT_BITS,
    **{name: EXACT_BITS[name] | _bits(*implying) for name, implying in _IMPLIED_BY.items()},
}
