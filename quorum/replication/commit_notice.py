"""Notices of a moved commit point, sent to followers on their own when no entries come along to carry it."""

from __future__ import annotations

from typing import Final

from quorate.quorum.host import Host

#: Turns of the loop that a moved commit point waits for entries to go with. Whoever wrote what was committed writes
#: again, if at all, within the next turns; followers are spared a message for every one of a stream of writes.
_PATIENCE_TURNS: Final = 2


class CommitNotice:
    """Counts turns since a pass left followers untold, and has the pass made that tells them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_untold = False
        self._is_counting = False
        self._turns = 0

    @property
    def is_due(self) -> bool:
        """Whether the next pass is to tell them."""
        return self._turns >= _PATIENCE_TURNS

    def pass_ended(self, *, is_untold: bool) -> None:
        """A pass over the followers left one untold, or none."""
        self._is_untold = is_untold
        if not is_untold:
            self._turns = 0
        elif not self._is_counting:
            self._count()

    def _count(self) -> None:
        self._is_counting = True
        self._host.next_turn(self._turn_passed)

    def _turn_passed(self) -> None:
        self._is_counting = False
        if not self._is_untold:
            return
        self._turns += 1
        if self.is_due:
            self._host.request_pump()
        else:
            self._count()
