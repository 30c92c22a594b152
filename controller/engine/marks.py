"""Notes the moments that a request passes through, for whoever traces it; where nobody does, nothing of it is made."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

#: It was a write's turn; it was decided; its records left for the log, and the other voters; they were committed, or,
#: where it wrote none, leadership was confirmed.
TURN: Final = "turn"
DECIDED: Final = "decided"
APPENDED: Final = "appended"
COMMITTED: Final = "committed"


class Marks:
    """Of one request."""

    __slots__ = ("_clock", "moments", "sent_as")

    def __init__(self, clock: Callable[[], int], sent_as: str) -> None:
        """``clock``: nanoseconds. ``sent_as``: the `traceparent` of a request that is made on behalf of this one."""
        self._clock = clock
        self.sent_as = sent_as
        #: Name and time of each, in their order. A request that writes several times passes some of them again.
        self.moments: list[tuple[str, int]] = []

    def note(self, moment: str) -> None:
        """It is there now."""
        self.moments.append((moment, self._clock()))


#: Of the request that the running task answers; None: nobody traces it.
MARKS: Final[ContextVar[Marks | None]] = ContextVar("marks", default=None)
