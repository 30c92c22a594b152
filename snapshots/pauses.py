"""Long work on an image by who has other work beside it: in small pieces, with a call between them that may wait.

Small pieces take a quarter more of a processor than large ones. Who has nothing else to do works in large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Called after every millisecond or two of work.
Pause = Callable[[], None]

#: Rows that are worked on at a time: some 1.5 ms of work, and 10.
_ROWS_WITH_PAUSES: Final = 2_048
_ROWS_WITHOUT: Final = 16_384


def no_pause() -> None:
    """The pause of who has nothing else to do."""


def rows_at_once(pause: Pause) -> int:
    """Rows between two calls of ``pause``."""
    return _ROWS_WITHOUT if pause is no_pause else _ROWS_WITH_PAUSES
