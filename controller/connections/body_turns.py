"""Turns of the loop for bodies that take long: one is decoded, and begun to be answered, in each.

However many come at once, sockets are read between two of them, and heartbeats answered. Of those that wait each
principal's first is taken before anybody's second: who sends many waits for himself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

#: Bytes of a body that takes no turn for itself: to decode it takes half a millisecond or so.
_BYTES_AT_ONCE: Final = 65_536
#: The same of principals', whose rights are looked up for each thing that is named, some thousand in the size above.
_PRINCIPALS_BYTES_AT_ONCE: Final = 2_048


def bytes_at_once(owner: str | None) -> int:
    """The size of the largest body that takes no turn. ``owner``: see ``bodies.Bodies``."""
    return _BYTES_AT_ONCE if owner is None else _PRINCIPALS_BYTES_AT_ONCE


class BodyTurns:
    """Of one server. Belongs to one event loop."""

    def __init__(self) -> None:
        self._next = asyncio.Lock()
        #: Of whom anything waits: each has one at most that waits for ``_next``.
        self._lines: WeakValueDictionary[str | None, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, owner: str | None) -> AsyncIterator[None]:
        """Wait for one, and let the loop turn behind it. Whoever has had his goes on before the next one is taken."""
        line = self._lines.get(owner)
        if line is None:
            line = self._lines[owner] = asyncio.Lock()
        async with line, self._next:
            try:
                yield
            finally:
                await asyncio.sleep(0)
