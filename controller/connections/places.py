"""Places for connections: how many there may be in all, from one address, and of strangers.

A stranger is a connection on which nobody has shown yet that he may ask. Whoever may shows it with the first request,
milliseconds after connecting. So strangers have a share of the places only, and a short time; where a place is wanting,
who was silent for longest gives up his. However many come and say nothing: who comes and asks is heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from quorate.metadata_log.errors import Overloaded

#: Of all places, those that strangers may have.
_STRANGERS_SHARE: Final = 0.25

H = TypeVar("H")


class Places(Generic[H]):
    """Of one server. ``H``: a connection. Times in seconds of one clock."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self.most = most
        self._most_of_address = most_of_address
        self._strangers_max = max(int(most * _STRANGERS_SHARE), 1)
        self._addresses: dict[H, str] = {}
        self._counts: Counter[str] = Counter()
        #: When each was heard of last, the longest silent first.
        self._strangers: dict[H, float] = {}

    def enter(self, holder: H, address: str, now: float) -> H | None:
        """Take a place as a stranger. Returns the stranger who gives up his for it.

        Raises:
            Overloaded: there is none.
        """
        if self._counts[address] >= self._most_of_address:
            raise Overloaded(
                f"{self._most_of_address} connections from {address} are open, and there may be no more: close some"
            )
        leaving = None
        is_full = len(self._addresses) >= self.most
        if is_full and not self._strangers:
            raise Overloaded(f"{self.most} connections are open, and there may be no more: close some")
        if is_full or len(self._strangers) >= self._strangers_max:
            leaving = next(iter(self._strangers))
            self.leave(leaving)
        self._addresses[holder] = address
        self._counts[address] += 1
        self._strangers[holder] = now
        return leaving

    def pass_on(self, holder: H, successor: H) -> None:
        """Another object stands for the connection from now on."""
        address = self._addresses.pop(holder, None)
        if address is None:
            return  # it is being closed
        self._addresses[successor] = address
        if holder in self._strangers:
            self._strangers[successor] = self._strangers.pop(holder)

    def prove(self, holder: H) -> None:
        """It is no stranger any more."""
        self._strangers.pop(holder, None)

    def hear(self, holder: H, now: float) -> None:
        """It said something; if it is a stranger's, it is now the last to be silent for long."""
        if self._strangers.pop(holder, None) is not None:
            self._strangers[holder] = now

    def leave(self, holder: H) -> None:
        """It has ended, or is about to."""
        self._strangers.pop(holder, None)
        address = self._addresses.pop(holder, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def silent_strangers(self, since: float) -> Iterator[H]:
        """Strangers not heard of after then."""
        for holder, heard_at in list(self._strangers.items()):
            if heard_at > since:
                return
            yield holder
