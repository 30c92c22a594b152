"""Messages on their way out. None leaves before the epoch and vote it was written under are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final

from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.wire import encode
from quorate.quorum.storage.votes import VoteState


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
        #: The message encoded last, and its bytes: what goes to all followers is encoded once.
        self._encoded: tuple[Message | None, bytes] = (None, b"")

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
            self._send(peer, channel, self._encode(message))
        # A message may hold a megabyte.
        self._encoded = (None, b"")

    def _encode(self, message: Message) -> bytes:
        if self._encoded[0] is not message:
            self._encoded = (message, encode(message))
        return self._encoded[1]

    def drop_peer(self, peer: int) -> None:
        """Forget what waits for a peer whose connection broke."""
        if self._waiting:
            self._waiting = deque(item for item in self._waiting if item[1] != peer)
