"""Tokens that may change while the process runs, and several kinds of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quorate.controller.identity.identity import Identity


class FoundTokens(Protocol):
    """Tokens that may change while the process runs."""

    @property
    def generation(self) -> int:
        """Another number for other tokens."""

    def find(self, token: str) -> Identity | None:
        """The identity that has a token; None: nobody has it."""


class AllTokens:
    """``FoundTokens`` of several kinds, asked in their order."""

    def __init__(self, kinds: Sequence[FoundTokens]) -> None:
        self._kinds = kinds

    @property
    def generation(self) -> int:
        """See ``FoundTokens``: none of the numbers ever falls."""
        return sum(tokens.generation for tokens in self._kinds)

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``."""
        return next((found for tokens in self._kinds if (found := tokens.find(token)) is not None), None)
