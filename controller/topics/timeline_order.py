"""Finds the partition of a topic that Kafka's own hash map (``TimelineHashMap``) lists first."""

from __future__ import annotations

from typing import Final

import numpy as np

#: 2^64 divided by the golden ratio: spreads hash codes over slots by their top bits.
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_CAPACITY: Final = 2
_LOAD_FACTOR: Final = 0.75


def first_listed_partition(count: int) -> int:
    """Of partitions 0 to ``count`` - 1, the first that is listed: the last one that came into the map's first slot.

    The map makes room for one more also when a value is replaced, so the topic is taken to have changed since it has
    that many partitions: if it has not, its partitions are alike, and which is listed first makes no difference.
    """
    capacity = _FIRST_CAPACITY
    while (count + 1) * _LOAD_FACTOR > capacity:
        capacity *= 2
    slots = (np.arange(count, dtype=np.uint64) * _SPREAD) >> np.uint64(65 - capacity.bit_length())
    return int(np.flatnonzero(slots == 0)[-1])
