"""The rule for dead connections, without sockets and clock, so that a simulated wire keeps it too.

TCP reports a peer that vanished after minutes, or, on a connection where nothing is sent, never. So both ends say
something at least every other heartbeat interval (a ping, if there is nothing else), and an end that read nothing for
``QuorumTiming.silence_max`` gives the connection up. Nobody needs to agree on it: who does not hear closes, whatever
the other end hears, so a link that loses one direction is given up as well.

A frame whose length is too high, and allowed, takes all that follows for its own: bytes come, and nobody is heard. So
one that has begun must come at ``FRAME_BYTES_PER_SECOND`` on average, and has ``silence_max`` on top; else the
connection is given up, too. A sender has all of a frame when it begins to send it, so only a link can be as slow as
that; and what comes faster fills the frame, whose content is then none.

Rules of the file:

- A connection is looked at once a heartbeat interval, all of a node's in one look. In between its owner only sets two
  flags, and its frames are counted: no clock is read for a message.
- A process that was stopped, or held up, does not blame its connections. A look that comes late counts no more than
  ``pause_threshold`` of silence beyond the interval, and blames nobody: the sockets have to be read first. They have
  been by the next look, so of two late ones in a row (a process that is always late) the second may blame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from quorate.quorum.config import QuorumTiming
from quorate.quorum.transport.frames import FrameReader

#: Half of what a link has that takes two minutes for a piece of a checkpoint, the slowest that is reckoned with.
FRAME_BYTES_PER_SECOND: Final = 4096


class Pulse:
    """Signs of life of one connection. Its owner sets the flags; the rest is for reading only."""

    __slots__ = ("frame_seconds", "frames_ended", "has_read", "has_sent", "silence")

    def __init__(self) -> None:
        #: Since the last look: anything was read, be it a part of a message; anything was sent.
        self.has_read = True
        self.has_sent = False
        #: Seconds for which nothing was read, as of the last look.
        self.silence = 0.0
        #: Seconds for which one frame has been under way, as of the last look, and those that had ended by then.
        self.frame_seconds = 0.0
        self.frames_ended = 0


class Watched(Protocol):
    """A connection."""

    @property
    def pulse(self) -> Pulse:
        """The one that its owner keeps."""

    @property
    def frames(self) -> FrameReader:
        """The reader that cuts its bytes into frames."""


C = TypeVar("C", bound=Watched)


class Look(NamedTuple, Generic[C]):
    """The connections to be dealt with at one look. No connection is in two of them."""

    #: Send a ping.
    idle: list[C]
    #: Close, without waiting for what is under way: nothing was read.
    dead: list[C]
    #: Close as well: bytes are read, and belong to a frame that does not get anywhere.
    stuck: list[C]


class SilenceWatch:
    """Looks at all connections of one node. See the module."""

    def __init__(self, timing: QuorumTiming, now: float) -> None:
        self._interval = timing.heartbeat_interval
        self._pause_threshold = timing.pause_threshold
        self._silence_max = timing.silence_max
        self._looked_at = now
        self._was_late = False

    @property
    def next_look(self) -> float:
        """The time of the next look."""
        return self._looked_at + self._interval

    def look(self, now: float, connections: Iterable[C]) -> Look[C]:
        """Count what happened since the last look, and begin anew."""
        is_late = now - self.next_look > self._pause_threshold
        may_blame = self._was_late or not is_late
        elapsed = min(now - self._looked_at, self._interval + self._pause_threshold)
        self._looked_at, self._was_late = now, is_late
        look: Look[C] = Look([], [], [])
        for connection in connections:
            pulse = connection.pulse
            pulse.silence = 0.0 if pulse.has_read else pulse.silence + elapsed
            is_stuck = self._is_stuck(pulse, connection.frames, elapsed)
            if pulse.silence >= self._silence_max and may_blame:
                look.dead.append(connection)
            elif is_stuck and may_blame:
                look.stuck.append(connection)
            elif not pulse.has_sent:
                look.idle.append(connection)
            pulse.has_read = pulse.has_sent = False
        return look

    def _is_stuck(self, pulse: Pulse, frames: FrameReader, elapsed: float) -> bool:
        is_same = frames.under_way and frames.ended == pulse.frames_ended
        pulse.frame_seconds = pulse.frame_seconds + elapsed if is_same else 0.0
        pulse.frames_ended = frames.ended
        return pulse.frame_seconds > self._silence_max + frames.under_way / FRAME_BYTES_PER_SECOND
