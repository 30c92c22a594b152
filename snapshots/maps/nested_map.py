"""Changes to a persistent map of small maps: what configs and quotas are."""

from __future__ import annotations

from types import MappingProxyType
from typing import Generic, TypeVar

from quorate.snapshots.maps.persistent_map import PersistentMap

K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")


class NestedMapEditor(Generic[K, N, V]):
    """Changes to one map, gathered and then made at once. A key without entries is absent.

    The map of a key is copied when it is first changed, and from then on changed in place.
    """

    __slots__ = ("_base", "_owned")

    def __init__(self, base: PersistentMap[K, MappingProxyType[N, V]]) -> None:
        self._base = base
        self._owned: dict[K, dict[N, V]] = {}

    def get(self, key: K, name: N) -> V | None:
        """One entry of a key as it is now, None if there is none."""
        entries = self._owned.get(key)
        if entries is not None:
            return entries.get(name)
        published = self._base.get(key)
        return None if published is None else published.get(name)

    def put(self, key: K, name: N, value: V) -> None:
        """Set one entry of a key."""
        own = self._owned.get(key)
        if own is None:
            own = self._own(key)
        own[name] = value

    def remove(self, key: K, name: N) -> None:
        """Remove one entry of a key; nothing happens if it is not there."""
        self._own(key).pop(name, None)

    def remove_all(self, key: K) -> None:
        """Remove a key with all its entries; nothing happens if it has none."""
        self._owned[key] = {}

    def _own(self, key: K) -> dict[N, V]:
        own = self._owned.get(key)
        if own is None:
            published = self._base.get(key)
            # The proxy's own copy: ``dict(proxy)`` asks it for entry after entry.
            own = self._owned[key] = {} if published is None else published.copy()
        return own

    @property
    def growth(self) -> int:
        """The number of entries that the map will have more than before; below 0: less."""
        return sum(len(entries) - len(self._base.get(key) or ()) for key, entries in self._owned.items())

    def finish(self) -> PersistentMap[K, MappingProxyType[N, V]]:
        """The map with all changes; the same object if there are none. Ends this editor."""
        owned = self._owned
        if len(owned) == 1:
            ((key, entries),) = owned.items()
            return self._base.put(key, MappingProxyType(entries)) if entries else self._base.without(key)
        updates = {key: MappingProxyType(entries) for key, entries in owned.items() if entries}
        removed = [key for key, entries in owned.items() if not entries]
        return self._base.changed(updates, removed) if owned else self._base
