"""The order in which Java's ``HashMap<String, ...>`` lists its keys.

Kafka keeps a registration's listeners and features in such maps and writes them as they come out. Snapshot records
list them the same way, so that they are byte for byte Kafka's. It draws the random numbers for racks in such an order,
too, so that replicas are placed on Kafka's brokers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_Item = TypeVar("_Item")
_FIRST_CAPACITY: Final = 16
_LOAD_FACTOR: Final = 0.75


def in_hash_map_order(items: Iterable[_Item], name: Callable[[_Item], str | None]) -> tuple[_Item, ...]:
    """The items as a map that they were put into in this order lists them; of equal names the last one counts.

    None is a name like another: Java's null key, and likewise an empty ``Optional``.
    """
    by_name = {name(item): item for item in items}
    capacity = _FIRST_CAPACITY
    while len(by_name) > capacity * _LOAD_FACTOR:
        capacity *= 2
    # A bucket keeps the order in which keys were put, and Python's sort is stable.
    return tuple(sorted(by_name.values(), key=lambda item: _bucket(name(item), capacity)))


def _bucket(key: str | None, capacity: int) -> int:
    code = 0  # the hash of null, of an empty Optional and of the empty string
    encoded = (key or "").encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", encoded):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ code >> 16) & (capacity - 1)
