"""Chance, as decisions are given it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class RandomSource(Protocol):
    """A source of random numbers; the shell supplies it, so that placement is reproducible."""

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound`` (exclusive), all equally likely."""

    def next_ints(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: ``next_int`` of each bound, in order."""


def shuffle(items: list[Any], random: RandomSource) -> None:
    """Java's ``Collections.shuffle``: from the back, each with one at or before it."""
    next_int = random.next_int
    for last in range(len(items) - 1, 0, -1):
        other = next_int(last + 1)
        items[last], items[other] = items[other], items[last]
