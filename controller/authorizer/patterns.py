"""Patterns of resource names, and the values of those that cover a name, without looking at the others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from quorate.snapshots.maps.persistent_map import PersistentMap

V = TypeVar("V")

LITERAL: Final = 3
PREFIXED: Final = 4
#: Pattern type and name.
Pattern = tuple[int, str]

#: Every name. With PREFIXED the name ``*`` is a prefix like others.
EVERYTHING: Final[Pattern] = (LITERAL, "*")


class PatternMap(Generic[V]):
    """Values by pattern, of one resource type. A value: ``changed`` gives successors, which share what they can."""

    __slots__ = ("_lengths", "_prefix_counts", "values")

    def __init__(
        self,
        values: PersistentMap[Pattern, V] | None = None,
        prefix_counts: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.values: PersistentMap[Pattern, V] = PersistentMap() if values is None else values
        #: Patterns that are prefixes, by length in characters: names are cut at these lengths only.
        self._prefix_counts = prefix_counts
        self._lengths = tuple(sorted(prefix_counts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PatternMap) and (self.values, self._lengths) == (other.values, other._lengths)

    def __hash__(self) -> int:
        raise TypeError("a map has no hash")

    def changed(self, updates: Mapping[Pattern, V | None]) -> PatternMap[V]:
        """With other values; None takes a pattern away."""
        present = {pattern: value for pattern, value in updates.items() if value is not None}
        gone = [pattern for pattern, value in updates.items() if value is None and pattern in self.values]
        counts = self._prefix_counts
        new = [pattern for pattern in present if pattern[0] == PREFIXED and pattern not in self.values]
        old = [pattern for pattern in gone if pattern[0] == PREFIXED]
        if new or old:
            counts = dict(counts)
            for _, name in new:
                counts[len(name)] = counts.get(len(name), 0) + 1
            for _, name in old:
                counts[len(name)] -= 1
            counts = {length: count for length, count in counts.items() if count}
        return PatternMap(self.values.changed(present, gone), counts)

    def covering(self, name: str) -> list[V]:
        """The values of the patterns that cover a name: the name itself, each prefix of it, and everything."""
        keys: list[Pattern] = [(LITERAL, name), EVERYTHING, *self._prefixes(name)]
        return [value for value in self.values.get_many(keys) if value is not None]

    def named_covering(self, name: str) -> list[tuple[Pattern, V]]:
        """The same with the patterns themselves."""
        keys: list[Pattern] = [(LITERAL, name), EVERYTHING, *self._prefixes(name)]
        found = zip(keys, self.values.get_many(keys), strict=True)
        return [(pattern, value) for pattern, value in found if value is not None]

    def above(self, pattern: Pattern) -> list[V]:
        """The values of a pattern itself and of the prefixes that cover all of it; not that of everything."""
        return [value for value in self.values.get_many([pattern, *self._prefixes(pattern[1])]) if value is not None]

    def _prefixes(self, name: str) -> list[Pattern]:
        end = len(name)
        return [(PREFIXED, name[:length]) for length in self._lengths if length <= end]
