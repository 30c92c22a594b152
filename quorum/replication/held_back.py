"""Entries that followers get later than those a commit waits for: which, and until when.

They come when the entries are committed and no others follow, or when they are due; several at once cost a follower
hardly more than one.
"""

from __future__ import annotations

import math
from typing import Final

#: More entries than this are sent to all followers in one pass: the message is made once, then.
_ENTRIES_MAX: Final = 16


class HeldBack:
    """The entries that the passes of one leader hold back. ``hold_back``: seconds that an entry may be late."""

    def __init__(self, hold_back: float) -> None:
        self._hold_back = hold_back
        self._is_holding = False
        #: When the followers that entries are held back from are served at the latest; inf = none is.
        self.until = math.inf

    def holds(self, entries: int, now: float) -> bool:
        """Whether so many new entries are held back from a follower that nothing waits for, in this pass."""
        if not 0 < entries <= _ENTRIES_MAX or now >= self.until:
            return False
        self._is_holding = True
        return True

    def pass_ended(self, now: float) -> None:
        """A pass over all followers was made."""
        if not self._is_holding:
            self.until = math.inf
        elif self.until == math.inf:
            self.until = now + self._hold_back
        self._is_holding = False

    def clear(self) -> None:
        """This node leads no more."""
        self.until = math.inf
