"""Keys that Spark sends to partitions of their own: rows of one bucket meet in one task, and no two buckets in one."""

from __future__ import annotations

from typing import Final

#: Spark's seed of ``hash``, by which ``repartition`` shares rows out.
_SEED: Final = 42
_MASK: Final = 0xFFFFFFFF


def partition_keys(partitions: int) -> list[int]:
    """For each partition a key that ``repartition(partitions, key)`` sends there."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(spark_hash(key) % partitions, key)
        key += 1
    return [found[partition] for partition in range(partitions)]


def spark_hash(number: int) -> int:
    """The value of Spark's ``hash`` for an int: MurmurHash3 of its four bytes."""
    mixed = _rotated(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    found = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _MASK) ^ 4
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK
