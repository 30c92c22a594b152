"""The readers of the metadata feed and their progress: Kafka's ControllerChannelManager, turned around.

Kafka's older controller kept a queue and a thread for each broker, and pushed. Here a broker pulls: its *session* is a
cursor into the one log that all share, so that a slow broker costs nobody else anything, and there are no copies.

A session is the reading of one broker process, under the id of its broker (the smallest, where it plays several).
It belongs to the controller that is read; a broker that goes over to another controller begins a session there.
Readers that do not name themselves are counted together, and so is everybody beyond ``SESSIONS_MAX``: what is shown by
broker stays bounded, whatever is claimed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from quorate.controller.engine.counters import Histogram

#: A session ends once its broker has not asked, and was not being served, for so long: brokers ask twice a second.
SILENT_SECONDS_MAX: Final = 30.0
#: Sessions with a name of their own: as many as fetches may be under way by default.
SESSIONS_MAX: Final = 2_000
#: Most commits whose time is remembered; the newer half always is. Of older ones the time in the queue is not known.
_COMMITS_KEPT: Final = 8_192
#: How often silent sessions are looked for.
_SWEEP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of the feed."""

    #: None: it did not say.
    broker_id: int | None
    #: Brokers that its process plays.
    hosted_brokers: int
    #: "host:port" of its end of the connection.
    address: str


class FeedSession:
    """The service to one reader, or to all that have no name. Soft state; times are monotonic seconds."""

    __slots__ = (
        "bytes_sent",
        "chunks_sent",
        "cut_off",
        "in_flight",
        "last_seen_at",
        "opened_at",
        "position",
        "queue_count",
        "queue_seconds",
        "queue_seconds_last",
        "reader",
        "unsent_bytes",
    )

    def __init__(self, reader: Reader, now: float) -> None:
        self.reader = reader
        self.opened_at = now
        #: When it last asked, or took something.
        self.last_seen_at = now
        #: Exclusive end of what it has, or its socket has taken for it.
        self.position = 0
        #: Fetches under way: they wait for news, or are being sent.
        self.in_flight = 0
        #: Of what is being sent to it: bytes that its socket has not taken yet.
        self.unsent_bytes = 0
        self.bytes_sent = 0
        self.chunks_sent = 0
        #: Times that it was let go because it did not read.
        self.cut_off = 0
        #: Time from a commit until its socket had taken it, summed over ``queue_count`` chunks.
        self.queue_seconds = 0.0
        self.queue_count = 0
        self.queue_seconds_last = 0.0

    def silent_seconds(self, now: float) -> float:
        """Since it asked, or took something; 0 while it waits for news, for then it is the controller's turn."""
        return 0.0 if self.in_flight and not self.unsent_bytes else now - self.last_seen_at


class CommitTimes:
    """The times at which offsets were committed, as this node learnt of it; the recent ones."""

    def __init__(self) -> None:
        #: Exclusive ends, ascending, and the time of each.
        self._ends: list[int] = []
        self._times: list[float] = []

    def note(self, end_offset: int, now: float) -> None:
        """Everything below ``end_offset`` is committed from now on."""
        ends = self._ends
        if ends and end_offset <= ends[-1]:
            return
        if len(ends) >= _COMMITS_KEPT:
            del ends[: _COMMITS_KEPT // 2], self._times[: _COMMITS_KEPT // 2]
        ends.append(end_offset)
        self._times.append(now)

    def of(self, offset: int) -> float | None:
        """The time at which the record at ``offset`` was committed; None where that is too long ago, or has not
        happened.
        """
        index = bisect_right(self._ends, offset)
        # The first one that is known may stand for anything before it as well.
        return self._times[index] if 0 < index < len(self._ends) else None


class FeedSessions:
    """The sessions of one controller. Owned by the loop thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        #: Monotonic seconds.
        self.now = now
        self._named: dict[int, FeedSession] = {}
        self._commits = CommitTimes()
        self._swept_at = now()
        self.unnamed = FeedSession(Reader(None, 0, ""), now())
        #: From commit to socket, over all sessions.
        self.queue_times = Histogram()

    def committed(self, end_offset: int) -> None:
        """The high watermark has moved."""
        self._commits.note(end_offset, self.now())

    @contextmanager
    def serving(self, reader: Reader, offset: int) -> Iterator[FeedSession]:
        """The session of a fetch from ``offset`` on, for as long as the fetch is under way."""
        now = self.now()
        session = self._session(reader, now)
        session.position = offset
        session.last_seen_at = now
        session.in_flight += 1
        try:
            yield session
        finally:
            session.in_flight -= 1

    def begin_chunk(self, session: FeedSession, size: int) -> None:
        """A chunk is about to be sent."""
        session.unsent_bytes += size

    def took(self, session: FeedSession, size: int) -> None:
        """The reader's socket has taken a part of the chunk."""
        session.unsent_bytes -= size
        session.bytes_sent += size
        session.last_seen_at = self.now()

    def sent(self, session: FeedSession, base_offset: int, end_offset: int) -> None:
        """All of a chunk has been taken.

        What was committed before the session began was not waiting for this reader, and does not count as queued.
        """
        session.position = end_offset
        session.chunks_sent += 1
        committed_at = self._commits.of(base_offset)
        if committed_at is not None and committed_at >= session.opened_at:
            waited = self.now() - committed_at
            session.queue_seconds += waited
            session.queue_seconds_last = waited
            session.queue_count += 1
            self.queue_times.note(waited)

    def gave_up(self, session: FeedSession, unsent: int, *, is_cut_off: bool) -> None:
        """So many bytes of a chunk will not be sent: the reader has gone, or is cut off because it does not read."""
        session.unsent_bytes -= unsent
        session.cut_off += is_cut_off

    def named(self) -> Sequence[FeedSession]:
        """The sessions that have a name, by broker id."""
        self._sweep(self.now())
        return [self._named[broker_id] for broker_id in sorted(self._named)]

    def _session(self, reader: Reader, now: float) -> FeedSession:
        if now - self._swept_at > _SWEEP_SECONDS:
            self._sweep(now)
        broker_id = reader.broker_id
        session = None if broker_id is None else self._named.get(broker_id)
        if session is None:
            if broker_id is None or len(self._named) >= SESSIONS_MAX:
                return self.unnamed
            session = self._named[broker_id] = FeedSession(reader, now)
        session.reader = reader
        return session

    def _sweep(self, now: float) -> None:
        self._swept_at = now
        ended = [
            broker_id
            for broker_id, session in self._named.items()
            if not session.in_flight and now - session.last_seen_at > SILENT_SECONDS_MAX
        ]
        for broker_id in ended:
            del self._named[broker_id]
