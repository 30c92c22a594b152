"""Outcomes of a request whose items were not all passed on: each stands where its item stood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def not_refused(items: Sequence[T], refused: Mapping[int, R]) -> list[T]:
    """The items of a request whose places have no outcome yet."""
    return [item for place, item in enumerate(items) if place not in refused]


def in_their_places(answered: Iterable[R], refused: Mapping[int, R]) -> list[R]:
    """All outcomes in the order of the request: ``answered`` are those of the items that were not refused."""
    rest = iter(answered)
    outcomes: list[R] = []
    while (given := refused.get(len(outcomes)) or next(rest, None)) is not None:
        outcomes.append(given)
    return outcomes
