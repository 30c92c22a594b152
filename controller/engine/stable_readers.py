"""Readers that wait until the stable state contains an offset."""

from __future__ import annotations

import asyncio


class StableReaders:
    """Owned by the controller's loop thread."""

    def __init__(self) -> None:
        #: (offset, exclusive, and who waits for it)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def wait(self, offset: int) -> None:
        """Until everything below the offset is applied."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, waiter))
        await waiter

    def release(self, applied_offset: int) -> None:
        """The state contains everything below this offset."""
        if not self._waiting:
            return
        due = [waiter for offset, waiter in self._waiting if offset <= applied_offset]
        self._waiting = [entry for entry in self._waiting if entry[0] > applied_offset]
        for waiter in due:
            if not waiter.done():
                waiter.set_result(None)

    def fail_all(self, error: Exception) -> None:
        """Nothing will be applied any more: a reader is told, not left without an answer."""
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(error)
