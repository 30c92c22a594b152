"""Words for a person who waits, so that nobody takes a command for stuck that looks for a controller."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from quorate.scripts.terminal.harmless import shown_name

#: A person is told soon; a file or a program that reads along, rarely.
_FIRST_SECONDS: Final = 1.0
_EACH_SECONDS: Final = 10.0


@asynccontextmanager
async def telling_who_is_waited_for(urls: Sequence[str]) -> AsyncIterator[None]:
    """While the block lasts, say on standard error for how long it has: on a terminal after a second, and each 10 s."""
    telling = asyncio.create_task(_tell(", ".join(urls)))
    try:
        yield
    finally:
        telling.cancel()


async def _tell(whom: str) -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    next_s = _FIRST_SECONDS if sys.stderr.isatty() else _EACH_SECONDS
    while True:
        await asyncio.sleep(begun + next_s - clock())
        sys.stderr.write(f"quorate: no answer yet from {shown_name(whom)}, after {next_s:.0f} s (Ctrl-C ends this)\n")
        sys.stderr.flush()
        next_s = _EACH_SECONDS if next_s < _EACH_SECONDS else next_s + _EACH_SECONDS
