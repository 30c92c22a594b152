"""Words for a person who waits, so that nobody takes a command for stuck that looks for a controller."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from quorate.scripts.terminal.harmless import shown_name

#: A person is told soon; a file or a program that reads along, rarely.
_FIRST_SECONDS: Final = 1.0
_EACH_SECONDS: Final = 10.0


@contextmanager
def telling_who_is_waited_for(urls: Sequence[str]) -> Iterator[None]:
    """While the block lasts, say on standard error for how long it has: on a terminal after a second, and each 10 s.

    In a running loop.
    """
    telling = _Telling(", ".join(urls))
    try:
        yield
    finally:
        telling.end()


class _Telling:
    def __init__(self, whom: str) -> None:
        self._whom = whom
        self._next_s = _FIRST_SECONDS if sys.stderr.isatty() else _EACH_SECONDS
        loop = asyncio.get_running_loop()
        self._begun = loop.time()
        self._timer = loop.call_later(self._next_s, self._tell)

    def end(self) -> None:
        """Say nothing more."""
        self._timer.cancel()

    def _tell(self) -> None:
        waited = f"after {self._next_s:.0f} s (Ctrl-C ends this)"
        sys.stderr.write(f"quorate: no answer yet from {shown_name(self._whom)}, {waited}\n")
        sys.stderr.flush()
        self._next_s = _EACH_SECONDS if self._next_s < _EACH_SECONDS else self._next_s + _EACH_SECONDS
        self._timer = asyncio.get_running_loop().call_at(self._begun + self._next_s, self._tell)
