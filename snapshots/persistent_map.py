"""An immutable map with cheap successors: two levels, a list of small dictionaries.

A change copies the outer list and one bucket, so it costs the square root of the size: a few microseconds at 100,000
keys. A published map is never written to, so it may be read from any thread.
Iteration order is unspecified: whoever needs an order sorts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

#: Keys a bucket, as a multiple of the number of buckets, at which the number of buckets is doubled. A change copies
#: buckets + 2 x keys a bucket references, which is least where there are twice as many buckets as keys in one.
_FILL_MAX: Final = 0.5


class PersistentMap(Mapping[K, V]):
    """A mapping that is a value. ``put``, ``without`` and ``changed`` give successors and leave it as it is."""

    __slots__ = ("_buckets", "_count", "_mask")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._buckets: list[dict[K, V]] = [{}]
        self._mask = 0
        self._count = 0
        if entries:
            self._rebuild(dict(entries))

    def _rebuild(self, entries: dict[K, V]) -> None:
        """Spread entries over as many buckets as their number asks for. Only on a map not published yet."""
        size = 1
        while len(entries) > _FILL_MAX * size * size:
            size *= 2
        self._buckets = [{} for _ in range(size)]
        self._mask = size - 1
        self._count = len(entries)
        for key, value in entries.items():
            self._buckets[hash(key) & self._mask][key] = value

    def _with(self, buckets: list[dict[K, V]], count: int) -> PersistentMap[K, V]:
        successor: PersistentMap[K, V] = PersistentMap.__new__(PersistentMap)
        successor._buckets = buckets
        successor._mask = self._mask
        successor._count = count
        if count > _FILL_MAX * len(buckets) * len(buckets):
            successor._rebuild(dict(successor.items()))
        return successor

    def __getitem__(self, key: K) -> V:
        return self._buckets[hash(key) & self._mask][key]

    def get(self, key: K, default: V | D | None = None) -> V | D | None:  # type: ignore[override]
        """The value of ``key``, or ``default``."""
        return self._buckets[hash(key) & self._mask].get(key, default)

    def get_many(self, keys: Iterable[K]) -> list[V | None]:
        """The values of many keys, in their order; None for those that are absent."""
        buckets, mask = self._buckets, self._mask
        return [buckets[hash(key) & mask].get(key) for key in keys]

    def keys_and_values(self) -> tuple[list[K], list[V]]:
        """All entries, as two lists in one order."""
        keys = [key for bucket in self._buckets for key in bucket]
        return keys, [value for bucket in self._buckets for value in bucket.values()]

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) & self._mask]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[K]:
        for bucket in self._buckets:
            yield from bucket

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PersistentMap):
            return NotImplemented
        if len(self) != len(other):
            return False
        if self._mask == other._mask:
            return bool(self._buckets == other._buckets)  # identical buckets are not compared entry by entry
        return dict(self.items()) == dict(other.items())

    def __hash__(self) -> int:
        raise TypeError("a map has no hash")

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self.items())!r})"

    def put(self, key: K, value: V) -> PersistentMap[K, V]:
        """The same map with ``key`` at ``value``."""
        at = hash(key) & self._mask
        bucket = self._buckets[at]
        buckets = self._buckets.copy()
        buckets[at] = changed = bucket.copy()
        changed[key] = value
        return self._with(buckets, self._count + len(changed) - len(bucket))

    def without(self, key: K) -> PersistentMap[K, V]:
        """The same map without ``key``; itself if it has no such key."""
        at = hash(key) & self._mask
        if key not in self._buckets[at]:
            return self
        buckets = self._buckets.copy()
        buckets[at] = changed = self._buckets[at].copy()
        del changed[key]
        return self._with(buckets, self._count - 1)

    def changed(self, updates: Mapping[K, V], removed: Iterable[K] = ()) -> PersistentMap[K, V]:
        """The same map without ``removed`` and then with ``updates``; every bucket is copied at most once."""
        if self._count < len(updates):
            gone = set(removed)
            entries = {key: value for key, value in self.items() if key not in gone}
            return PersistentMap({**entries, **updates})
        buckets = self._buckets.copy()
        copied: set[int] = set()
        count = self._count
        for key in removed:
            count -= key in self._owned(buckets, copied, key)
            self._owned(buckets, copied, key).pop(key, None)
        for key, value in updates.items():
            bucket = self._owned(buckets, copied, key)
            count += key not in bucket
            bucket[key] = value
        return self._with(buckets, count) if copied else self

    def _owned(self, buckets: list[dict[K, V]], copied: set[int], key: K) -> dict[K, V]:
        at = hash(key) & self._mask
        if at not in copied:
            copied.add(at)
            buckets[at] = buckets[at].copy()
        return buckets[at]

    def changes_since(self, earlier: PersistentMap[K, V]) -> tuple[set[K], set[K]]:
        """Keys that are new or have another value here, and keys that only ``earlier`` has.

        Buckets that both share are skipped, so between near relatives the cost is that of what changed.
        """
        if self is earlier:
            return set(), set()
        if self._mask == earlier._mask:
            pairs = [(a, b) for a, b in zip(earlier._buckets, self._buckets, strict=True) if a is not b]
        else:
            pairs = [(dict(earlier.items()), dict(self.items()))]
        absent = object()
        updated: set[K] = set()
        removed: set[K] = set()
        for old, new in pairs:
            old_any = cast("dict[K, Any]", old)
            updated.update(key for key, value in new.items() if _differs(old_any.get(key, absent), value))
            removed.update(key for key in old if key not in new)
        return updated, removed


def _differs(old: object, new: object) -> bool:
    return old is not new and old != new


class MapEditor(Generic[K, V]):
    """Changes to one map, gathered and then made at once: what replay of a batch works on."""

    __slots__ = ("_base", "_base_count", "_removed", "_updates")

    def __init__(self, base: PersistentMap[K, V]) -> None:
        self._base = base
        self._base_count = len(base)
        self._updates: dict[K, V] = {}
        self._removed: set[K] = set()

    @property
    def is_changed(self) -> bool:
        """Whether anything was set or removed so far."""
        return bool(self._updates or self._removed)

    def get(self, key: K) -> V | None:
        """The value as it is now, None if there is none."""
        if key in self._updates:
            return self._updates[key]
        return None if key in self._removed else self._base.get(key)

    def get_many(self, keys: Sequence[K]) -> list[V | None]:
        """The values of many keys as they are now, in their order; None for those that are absent."""
        found = self._base.get_many(keys)
        updates, removed = self._updates, self._removed
        if updates or removed:
            return [updates.get(key, None if key in removed else value) for key, value in zip(keys, found, strict=True)]
        return found

    def __getitem__(self, key: K) -> V:
        return self._updates[key] if key in self._updates else self._base[key]

    def __contains__(self, key: K) -> bool:
        if key in self._updates:
            return True
        return self._base_count > 0 and key not in self._removed and key in self._base

    def __setitem__(self, key: K, value: V) -> None:
        self._updates[key] = value

    def update(self, entries: Mapping[K, V]) -> None:
        """Set many keys."""
        self._updates.update(entries)

    def remove(self, key: K) -> None:
        """Remove a key; nothing happens if it is not there."""
        self._updates.pop(key, None)
        self._removed.add(key)

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries as they are now."""
        yield from self._updates.items()
        for key, value in self._base.items():
            if key not in self._updates and key not in self._removed:
                yield key, value

    def finish(self) -> PersistentMap[K, V]:
        """The map with all changes; the same object if there are none."""
        if not self._updates and not self._removed:
            return self._base
        if len(self._updates) == 1 and not self._removed:
            return self._base.put(*next(iter(self._updates.items())))
        return self._base.changed(self._updates, self._removed)
