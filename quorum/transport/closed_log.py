"""Log lines of connections that were closed: one for a peer and a reason in a while, and a count of the others.

A peer that comes and goes, or anybody who knocks with what is no handshake, would fill the log otherwise.
"""

from __future__ import annotations

import logging
from typing import Final

from quorate.metadata_log.tracebacks import traceback_text

logger = logging.getLogger(__name__)

#: Seconds between two lines of one peer and reason.
QUIET_S: Final = 10.0
#: Peers and reasons that have lines of their own within that time.
KINDS_MAX: Final = 64
_OTHERS: Final = "other peers"


class _Told:
    """The last line about one peer and reason, and those left out since."""

    __slots__ = ("at", "last", "left_out")

    def __init__(self, at: float) -> None:
        self.at = at
        #: Times that it happened again, and with what words the last time.
        self.left_out = 0
        self.last = ""


class ClosedLog:
    """Of one node. Times in seconds of one monotonic clock.

    Peers that nobody knows are told apart by their addresses, as long as there are few.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], _Told] = {}

    def closed(self, peer: str, reason: str, sentence: str, now: float, bug: Exception | None = None) -> None:
        """The connection to ``peer`` was closed. ``reason`` is one of a few words, ``sentence`` may say anything.

        ``bug``: its traceback is logged, too.
        """
        if (peer, reason) not in self._told and len(self._told) >= KINDS_MAX:
            peer, reason = _OTHERS, ""
        told = self._told.get((peer, reason))
        if told is None:
            self._told[peer, reason] = _Told(now)
            traceback = "" if bug is None else f"\n{traceback_text(bug)}"
            logger.warning("connection to %s closed: %s%s", peer, sentence, traceback)
        else:
            told.left_out += 1
            told.last = sentence

    def look(self, now: float) -> None:
        """Say what was left out for long enough. To be called now and then."""
        for key, told in list(self._told.items()):
            if now - told.at < QUIET_S:
                continue
            del self._told[key]
            if told.left_out:
                logger.warning("connection to %s closed %d times more, the last: %s", key[0], told.left_out, told.last)
                self._told[key] = _Told(now)
