"""``java.util.Random``, so that Kafka's placements can be repeated number for number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """The linear congruential generator that Java documents; a ``RandomSource``."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next_31_bits(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17

    def next_int(self, bound: int) -> int:
        drawn = self._next_31_bits()
        if bound & (bound - 1) == 0:
            return (bound * drawn) >> 31
        while drawn - drawn % bound + (bound - 1) >= 1 << 31:
            drawn = self._next_31_bits()
        return drawn % bound

    def next_ints(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self.next_int(bound) for bound in bounds.tolist()], np.int64)
