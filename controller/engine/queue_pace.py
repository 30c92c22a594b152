"""The pace at which a line is worked off: how long what waits in it takes, and when who is refused may come again."""

from __future__ import annotations

from typing import Final

#: Of what was known, the share that counts beside a new note: some fifty of them say what the pace is.
_KEPT: Final = 0.98
#: Nobody is told to stay away for longer: until then much may have changed.
COME_AGAIN_MS_MAX: Final = 60_000.0


class QueuePace:
    """Of one line. Times in milliseconds of one clock."""

    def __init__(self) -> None:
        self._ms = self._done = 0.0
        #: Until then there is work: what waits, and those who were refused and will come again.
        self._promised_ms = 0.0

    def note(self, ms: float, done: int = 1) -> None:
        """So many more were worked off in a time in which others waited."""
        self._ms = _KEPT * self._ms + ms
        self._done = _KEPT * self._done + done

    def wait_ms(self, waiting: int) -> float:
        """The time that so many take; 0 while nothing was worked off."""
        return waiting * self._ms / self._done if self._done else 0.0

    def come_again_ms(self, waiting: int, now_ms: float) -> float:
        """In what time there is room for one who is refused now; 0 where that is not known.

        Each is told to come behind those who were refused before him, or all of them would come at once.
        """
        latest = now_ms + COME_AGAIN_MS_MAX
        free_at = max(self._promised_ms, now_ms + self.wait_ms(waiting)) + self.wait_ms(1)
        self._promised_ms = min(free_at, latest)
        return self._promised_ms - now_ms if self._done else 0.0
