"""Memory held by feed chunks that are being sent: a chunk that goes to many counts once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Sized(Protocol):
    """A chunk, as far as its memory goes."""

    @property
    def data(self) -> bytes:
        """Its bytes."""


class ChunksUnderWay:
    """Owned by the loop thread."""

    def __init__(self) -> None:
        #: By identity, which means something for as long as somebody holds the chunk.
        self._holders: dict[int, int] = {}
        #: Of all chunks that somebody holds.
        self.bytes = 0

    @contextmanager
    def holding(self, chunk: Sized) -> Iterator[None]:
        """One more follower is being sent this chunk."""
        key, size = id(chunk), len(chunk.data)
        holders = self._holders.get(key, 0)
        self._holders[key] = holders + 1
        if not holders:
            self.bytes += size
        try:
            yield
        finally:
            holders = self._holders[key] - 1
            if holders:
                self._holders[key] = holders
            else:
                del self._holders[key]
                self.bytes -= size
