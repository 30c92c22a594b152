"""A fuzzing target: untrusted bytes must be refused by a typed error, or read right."""

from __future__ import annotations

from random import Random
from typing import Protocol


class Wrong(Exception):
    """A result that cannot be right."""


class FuzzTarget(Protocol):
    """A reader. Whatever production raises that is not one of its typed errors, ``run`` lets through."""

    def make(self, rng: Random) -> bytes:
        """An input."""

    def run(self, data: bytes) -> bool:
        """Whether it was taken, for statistics.

        Raises:
            Wrong: what came of it cannot be right.
        """
