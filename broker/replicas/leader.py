"""The leaders' side of the exchange: notes what followers say, answers where the logs end, and keeps the ISR book.

Rules of the file: no clock, no I/O; times come in as milliseconds of the *attended* clock (``attended.AttendedClock``).
A process that plays followers has one session here. What its brokers follow, and say to be level with, is known by one
number, the session's position, which gives the time when all of it was caught up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.broker.replicas.isr_book import AS_BEFORE, IsrBook, restarted_brokers
from quorate.broker.replicas.led_rows import FollowerGroup
from quorate.broker.replicas.messages import EVERYTHING, UNSAID, FollowAnswer, FollowedRows, FollowMessage, over
from quorate.broker.replicas.stand_in import StandInLog
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage


@dataclass(frozen=True, slots=True)
class _LogEnds:
    """The last answer in a session."""

    time_ms: int = UNSAID
    end: int = 0


@dataclass(slots=True)
class _Session:
    """One process that follows."""

    #: Of the last message that was noted.
    number: int = UNSAID
    #: Brokers whose word is taken, with their epochs.
    followers: dict[int, int] = field(default_factory=dict)
    group: FollowerGroup = field(default_factory=FollowerGroup)
    answered: _LogEnds = _LogEnds()


class LeaderCore:
    """See the module. ``book`` says what to ask the controller for."""

    def __init__(self, log: StandInLog, lag_max_ms: float) -> None:
        self.book = IsrBook(lag_max_ms)
        #: "" until the first image: nobody is answered before.
        self.cluster_id = ""
        #: Where those listen who followed here last, by broker.
        self.heard_from: dict[int, str] = {}
        self._log = log
        self._image = EMPTY_IMAGE
        self._sessions: dict[int, _Session] = {}
        #: Whose word on a broker is taken.
        self._owners: dict[int, int] = {}

    @property
    def session_count(self) -> int:
        """Processes that follow leaders here."""
        return len(self._sessions)

    def update(self, image: MetadataImage, leaders: Collection[int], now_ms: float) -> None:
        """Take a new image, and the brokers that are played here."""
        before, self._image = self._image, image
        if image.provenance.end_offset < before.provenance.end_offset:
            # What was told of leader epochs that this image does not have is lost: let everybody say it again.
            for session in list(self._sessions):
                self._end(session)
        self.book.update(image, leaders, now_ms)
        for broker in restarted_brokers(before, image):
            self._disown(broker)

    def answer(self, message: FollowMessage, now_ms: float, wall_ms: float) -> FollowAnswer:
        """Note what a message says, and answer it. ``wall_ms`` since 1970: where the logs end."""
        if not self.cluster_id:
            return over(ErrorCode.BROKER_NOT_AVAILABLE)
        if message.cluster_id != self.cluster_id:
            return over(ErrorCode.INCONSISTENT_CLUSTER_ID)
        error = self._continue(message)
        if error is not ErrorCode.NONE:
            self._end(message.session)
            return over(error)
        session = self._sessions[message.session]
        refused = self._note_followers(message, session)
        if not session.followers:
            self._end(message.session)
            return over(ErrorCode.STALE_BROKER_EPOCH)
        self._note_position(message, session, now_ms)
        if message.address:
            self.heard_from |= dict.fromkeys(session.followers, message.address)
        codes = self._note_rows(message.rows, session)
        session.number = message.number
        # A time is given once, so that an echo names one answer.
        time_ms = max(int(now_ms), session.answered.time_ms + 1)
        session.answered = _LogEnds(time_ms, self._log.end(wall_ms))
        at = np.flatnonzero(codes)
        return FollowAnswer(
            ErrorCode.NONE,
            time_ms,
            self._log.start(wall_ms),
            session.answered.end,
            tuple(sorted(refused)),
            at.astype(np.int32),
            codes[at],
        )

    # --- sessions ------------------------------------------------------------------------------------

    def _continue(self, message: FollowMessage) -> ErrorCode:
        """Whether the message begins a session, or is the next one of its session."""
        session = self._sessions.get(message.session)
        if message.number == 0:
            if session is not None:
                return ErrorCode.INVALID_FETCH_SESSION_EPOCH
            self._sessions[message.session] = _Session()
            return ErrorCode.NONE
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        is_next = message.number == session.number + 1 and message.replied_ms == session.answered.time_ms
        return ErrorCode.NONE if is_next else ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def _note_followers(self, message: FollowMessage, session: _Session) -> list[int]:
        """Take the word of those who are registered under the epoch they name; the others, refused."""
        if tuple(session.followers.items()) == message.followers:
            return []
        refused = []
        said = dict(message.followers)
        for broker in [broker for broker, epoch in session.followers.items() if said.get(broker) != epoch]:
            self._disown(broker)
        self._sessions.setdefault(message.session, session)
        for broker, epoch in message.followers:
            known = self._image.cluster.brokers.get(broker)
            if known is None or known.epoch != epoch:
                refused.append(broker)
            elif broker not in session.followers:
                self._disown(broker)
                self._owners[broker] = message.session
                self.book.groups[broker] = session.group
            if broker not in refused:
                session.followers[broker] = epoch
        session.followers = dict(sorted(session.followers.items()))
        return refused

    def _disown(self, broker: int) -> None:
        """Nobody's word on a broker is taken; a session without brokers is over."""
        owner = self._owners.pop(broker, None)
        if owner is None:
            return
        self.book.leave_group(broker)
        session = self._sessions[owner]
        del session.followers[broker]
        if not session.followers:
            del self._sessions[owner]

    def _end(self, session: int) -> None:
        known = self._sessions.get(session)
        for broker in () if known is None else tuple(known.followers):
            self._disown(broker)
        self._sessions.pop(session, None)

    # --- what is said --------------------------------------------------------------------------------

    def _note_position(self, message: FollowMessage, session: _Session, now_ms: float) -> None:
        answered, group = session.answered, session.group
        if message.position == UNSAID or answered.time_ms == UNSAID:
            return
        limit_ms = now_ms - self.book.lag_max_ms
        # To the book one that fell silent is level no more: it may have looked at everything meanwhile.
        was_level = group.is_level and group.caught_up_ms >= limit_ms
        caught_up_ms = answered.time_ms - self._log.behind_ms(answered.end - message.position)
        group.caught_up_ms = max(group.caught_up_ms, caught_up_ms)
        # One that woke up after a long time is level with what it was answered before.
        is_recent = answered.time_ms >= limit_ms
        group.is_level = message.position >= answered.end and is_recent
        if group.is_level and not was_level:
            self.book.look_again()

    def _note_rows(self, rows: FollowedRows, session: _Session) -> NDArray[np.int16]:
        codes = np.zeros(len(rows), np.int16)
        if not len(rows):
            return codes
        is_heard = np.isin(rows.followers, list(session.followers))
        codes[~is_heard] = ErrorCode.STALE_BROKER_EPOCH
        at = np.flatnonzero(is_heard)
        codes[at] = self.book.note(
            rows.topic_ids[at],
            rows.partition_ids[at],
            rows.leader_epochs[at],
            rows.followers[at],
            self._caught_up_ms(rows, session)[at],
            rows.is_level[at],
        )
        return codes

    def _caught_up_ms(self, rows: FollowedRows, session: _Session) -> NDArray[np.float64]:
        """float64[n]: when those had everything that say how far they are by themselves."""
        times = np.full(len(rows), AS_BEFORE)
        if session.answered.time_ms == UNSAID:
            return times
        for at in np.flatnonzero(~rows.is_level & (rows.held >= 0) & (rows.held < EVERYTHING)).tolist():
            missing = session.answered.end - int(rows.held[at])
            times[at] = session.answered.time_ms - self._log.behind_ms(missing)
        return times
