"""The differences between an outcome and the expected one.

Lists are compared in order, but for those that are sets. The ELR and the last known ELR are: Kafka's come out of a hash
set.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

ELR_SETS: Final = ("elr", "last_known_elr")
_ABSENT: Final = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the two disagree."""

    place: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.place}: expected {self.expected!r}, got {self.got!r}"


def differences(
    expected: Any, got: Any, place: str = "", *, ignores: Collection[str] = (), sets: Collection[str] = ELR_SETS
) -> list[Difference]:
    """All differences, by place; values as they are in JSON.

    Args:
        ignores: names of fields that are not compared.
        sets: names of fields whose lists have no order.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        found = []
        for name in [*expected, *(name for name in got if name not in expected)]:
            if name in ignores:
                continue
            there, here = expected.get(name, _ABSENT), got.get(name, _ABSENT)
            if name in sets and isinstance(there, list) and isinstance(here, list):
                there, here = sorted(there), sorted(here)
            found += differences(there, here, f"{place}.{name}" if place else str(name), ignores=ignores, sets=sets)
        return found
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got) and _is_deep(expected):
        found = []
        for number, (there, here) in enumerate(zip(expected, got, strict=True)):
            found += differences(there, here, f"{place}[{number}]", ignores=ignores, sets=sets)
        return found
    return [] if expected == got and type(expected) is type(got) else [Difference(place, expected, got)]


def _is_deep(values: list[Any]) -> bool:
    """Whether a list holds more than plain values, so that a difference is best named by its place."""
    return any(isinstance(value, (dict, list)) for value in values)
