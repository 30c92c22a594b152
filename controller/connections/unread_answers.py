"""Answers that lie here because whoever asked does not take them: so many bytes of one principal, and not for ever.

The kernel gives a connection up on which nothing at all is taken (``sockets.TO_A_CLIENT``), but for Unix sockets. Who
takes a byte now and then, or asks for large answers on many connections at once, keeps memory as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from quorate.controller.api.sockets import TO_A_CLIENT

#: In so many seconds a client takes so many bytes of an answer, or all of it: what a link of 70 kbit/s does.
TAKE_S: Final = float(TO_A_CLIENT.give_up_after)
TAKE_BYTES: Final = 262_144
#: Of one principal that is not the cluster's own, and of all such. Any one answer is smaller.
BYTES_OF_ONE_MAX: Final = 64 * 1024 * 1024
BYTES_MAX: Final = 256 * 1024 * 1024


class AnsweredConnection(Protocol):
    """A connection on which answers go out."""

    transport: asyncio.Transport


A = TypeVar("A", bound=AnsweredConnection)


@dataclass(slots=True)
class _Unread:
    """Bytes that lie on one connection."""

    #: None: the cluster's own.
    owner: str | None
    #: As they were when they were counted.
    size: int
    #: Since when so much of them is to be taken.
    since: float


class UnreadAnswers(Generic[A]):
    """Of one server. Times in seconds of one clock."""

    def __init__(self) -> None:
        self._unread: dict[A, _Unread] = {}
        #: Bytes by principal.
        self._sizes: Counter[str] = Counter()

    def begin(self, asker: A, owner: str | None, now: float) -> bool:
        """An answer is not taken as fast as it comes. Returns whether there is room for what of it lies here."""
        size = asker.transport.get_write_buffer_size()
        self._unread[asker] = _Unread(owner, size, now)
        if owner is None:
            return True
        self._sizes[owner] += size
        return self._sizes[owner] <= BYTES_OF_ONE_MAX and self._sizes.total() <= BYTES_MAX

    def end(self, asker: A) -> bool:
        """It has been taken, or the connection is lost. Returns whether there was one."""
        unread = self._unread.pop(asker, None)
        if unread is None:
            return False
        if unread.owner is not None:
            self._sizes[unread.owner] -= unread.size
            if not self._sizes[unread.owner]:
                del self._sizes[unread.owner]
        return True

    def slow(self, now: float) -> list[A]:
        """Those who took too little of an answer in their time."""
        due = [(asker, one) for asker, one in self._unread.items() if one.since <= now - TAKE_S]
        slow = []
        for asker, one in due:
            left = asker.transport.get_write_buffer_size()
            if one.size - left < TAKE_BYTES:
                slow.append(asker)
            else:
                self.end(asker)
                self.begin(asker, one.owner, now)
        return slow
