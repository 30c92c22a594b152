"""Places of readers of the feed: how many fetches may be under way, in all and of one principal.

Brokers live by the feed, so half of the places are theirs; whoever else may read it shares the other half, and none of
them can have all of that.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from quorate.metadata_log.errors import Overloaded

#: See ``Overloaded``.
_LIMIT: Final = "feed_fetches"


class FeedPlaces:
    """Of one controller. A reader is a principal, or None: one for whom there is no bound but that of all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_others = max(1, most // 2)
        self._most_of_one = max(1, most // 4)
        #: Fetches under way.
        self.taken = 0
        self._others: Counter[str] = Counter()

    def enter(self, reader: str | None) -> None:
        """Take a place.

        Raises:
            Overloaded: there is none.
        """
        if self.taken >= self._most:
            message = f"{self.taken} fetches of the feed are under way, {self._most} is the most"
            raise Overloaded(message, _LIMIT)
        if reader is not None:
            if self._others[reader] >= self._most_of_one:
                message = f"{self._others[reader]} fetches of the feed by {reader} are under way"
                message += f", {self._most_of_one} is the most of one principal that is no broker"
                raise Overloaded(message, _LIMIT)
            others = self._others.total()
            if others >= self._most_of_others:
                message = f"{others} fetches of the feed by others than brokers are under way"
                raise Overloaded(f"{message}, {self._most_of_others} is the most", _LIMIT)
            self._others[reader] += 1
        self.taken += 1

    def leave(self, reader: str | None) -> None:
        """Give it back."""
        self.taken -= 1
        if reader is not None:
            self._others[reader] -= 1
            if not self._others[reader]:
                del self._others[reader]
