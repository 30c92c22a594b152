"""Messages on their way out. None leaves before the epoch and vote it was written under are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final

from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.wire import encode
from quorate.quorum.storage.votes import VoteState
from quorate.quorum.versions import NEWEST_VERSION


class Channel(Enum):
    """One of the two connections to a peer."""

    CONSENSUS = "consensus"
    #: Checkpoint chunks, so that they never stand before a heartbeat.
    BULK = "bulk"


#: Messages that wait for the vote state: beyond it the oldest is lost, as if a connection had lost it. A disk that
#: hangs may hold them up for long, and the last ones say what those before them said.
_WAITING_MAX: Final = 1_000


class Outbox:
    """Holds messages back until the vote state they rest on is durable; order is kept."""

    def __init__(self, votes: VoteState, send: Callable[[int, Channel, bytes], None]) -> None:
        self._votes = votes
        self._send = send
        self._waiting: deque[tuple[int, int, Channel, Message]] = deque()
        #: By peer, the version in which it is spoken to.
        self._versions: dict[int, int] = {}
        #: The message encoded last, its version and bytes: what goes to all followers is encoded once.
        self._encoded: tuple[Message | None, int, bytes | None] = (None, 0, None)

    def version(self, peer: int) -> int:
        """The version in which messages go to a peer, and come from it."""
        return self._versions.get(peer, NEWEST_VERSION)

    def set_version(self, peer: int, version: int) -> None:
        """Speak to a peer in this version from now on."""
        self._versions[peer] = version

    def put(self, peer: int, message: Message, channel: Channel = Channel.CONSENSUS) -> None:
        """Send ``message`` at the next ``flush`` that may."""
        waiting = self._waiting
        if len(waiting) >= _WAITING_MAX and waiting[0][0] > self._votes.durable_generation:
            waiting.popleft()
        waiting.append((self._votes.staged_generation, peer, channel, message))

    def flush(self) -> None:
        """Send what may leave."""
        waiting = self._waiting
        durable = self._votes.durable_generation
        while waiting and waiting[0][0] <= durable:
            _, peer, channel, message = waiting.popleft()
            payload = self._encode(message, self.version(peer))
            if payload is not None:
                self._send(peer, channel, payload)
        # A message may hold a megabyte.
        self._encoded = (None, 0, None)

    def _encode(self, message: Message, version: int) -> bytes | None:
        """The message's bytes; None: it is none of this version, and whoever speaks it does without."""
        if self._encoded[0] is not message or self._encoded[1] != version:
            self._encoded = (message, version, encode(message, version))
        return self._encoded[2]

    def drop_peer(self, peer: int) -> None:
        """Forget what waits for a peer whose connection broke."""
        if self._waiting:
            self._waiting = deque(item for item in self._waiting if item[1] != peer)
