"""Broker sessions: soft state of the active controller. No clock: the time, monotonic, comes as an argument.

Kafka's ``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker``. Nothing of it is in the log; it is made anew when a
controller becomes active, and every broker then has a full session. Decisions only read it; the controller
calls the methods that change it, before (contact) and after (everything else) it has decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from quorate.controller.brokers.session_order import Session, SessionOrder
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.page_access import has_leader
from quorate.snapshots.table.page_search import PageSearch

#: No offset of a log.
NO_OFFSET: Final = -1
#: What is promised of a session is a multiple: thousands of brokers are then told one of a few numbers.
_PROMISE_STEP_MS: Final = 50


class BrokerControlState(Enum):
    """The state of a broker as the controller sees it (Kafka's ``BrokerControlState``)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    SHUTDOWN_NOW = "shutdown_now"


@dataclass(slots=True)
class _BrokerContact:
    """One broker, as its heartbeats show it."""

    #: The log holds the broker's registration from here on; a broker that has applied less is not caught up.
    registration_offset: int
    is_fenced: bool
    metadata_offset: int = NO_OFFSET
    #: End of what its controlled shutdown wrote; -1 = it is not shutting down.
    shutdown_offset: int = NO_OFFSET
    #: An image that reaches to here has what was elected when it was fenced last.
    unfenced_offset: int = NO_OFFSET
    #: Finds what it leads; None until it wants to leave.
    led: PageSearch | None = None


class BrokerHeartbeats:
    """Sessions of all registered brokers. Owned by the controller's loop thread."""

    def __init__(self, session_timeout_ms: float) -> None:
        self._timeout_ms = session_timeout_ms
        self._brokers: dict[int, _BrokerContact] = {}
        #: Time of the last heartbeat in each session. Also sessions that never were: a heartbeat is noted before
        #: it is checked. They end like all others, one session timeout later.
        self._contacts: dict[Session, float] = {}
        #: The same sessions.
        self._order = SessionOrder()
        #: Nobody else had been elected by then.
        self._confirmed_ms = -math.inf

    @classmethod
    def of_image(
        cls, image: MetadataImage, session_timeout_ms: float, now_ms: float, *, starts_sessions: bool = True
    ) -> BrokerHeartbeats:
        """The state at activation: every unfenced broker has a full session from now.

        Args:
            starts_sessions: False = a session begins with the broker's first heartbeat, so that a cluster made
                from another's metadata keeps the picture until its brokers speak.
        """
        heartbeats = cls(session_timeout_ms)
        for broker in image.cluster.brokers.values():
            # What the registration's own offset was is not in the image; all of the image is a safe bound.
            last_offset = image.provenance.last_contained_offset
            heartbeats.register(broker.id, broker.is_fenced, last_offset)
            heartbeats.unfenced(broker.id, last_offset)
            if starts_sessions and not broker.is_fenced:
                heartbeats.note_contact(Session(broker.id, broker.epoch), now_ms)
        return heartbeats

    # --- what decisions read -------------------------------------------------------------------------

    def has_session(self, broker_id: int, broker_epoch: int, now_ms: float) -> bool:
        """Whether a heartbeat under this epoch came at most one session timeout ago. Fenced or not does not matter."""
        contact = self._contacts.get(Session(broker_id, broker_epoch))
        return contact is not None and now_ms <= contact + self._timeout_ms

    def state(self, broker_id: int) -> BrokerControlState:
        """The state of the broker now: fenced, unfenced or in controlled shutdown."""
        broker = self._brokers[broker_id]
        if broker.shutdown_offset != NO_OFFSET:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if broker.is_fenced else BrokerControlState.UNFENCED

    def registration_offset(self, broker_id: int) -> int:
        """Offset that a broker must have applied to be caught up."""
        return self._brokers[broker_id].registration_offset

    def shutdown_offset(self, broker_id: int) -> int:
        """End of what the broker's controlled shutdown wrote; -1 = it is not shutting down."""
        return self._brokers[broker_id].shutdown_offset

    def may_shut_down(self, broker_id: int) -> bool:
        """Whether all brokers that stay have applied what the broker's controlled shutdown wrote.

        One that has no session, as nobody plays it, is not waited for: it would be for ever.
        """
        heard = {session.broker_id for session in self._contacts}
        active = [
            broker.metadata_offset
            for id_, broker in self._brokers.items()
            if id_ in heard and not broker.is_fenced and broker.shutdown_offset == NO_OFFSET
        ]
        return not active or self._brokers[broker_id].shutdown_offset <= min(active)

    def leads_any(self, image: MetadataImage, broker_id: int) -> bool:
        """Whether a broker leads a partition: asked with every heartbeat of one that leaves."""
        broker = self._brokers[broker_id]
        if broker.led is None:
            broker.led = PageSearch(partial(has_leader, broker=broker_id))
        return broker.led.any(image.partitions)

    def stale_session_or_none(self, now_ms: float) -> Session | None:
        """A session that has ended, the first in Kafka's order; None while all are valid."""
        ended = (session for session in self._order if now_ms > self._contacts[session] + self._timeout_ms)
        return next(ended, None)

    def next_check_ms(self) -> float | None:
        """The time at which the first session ends unless its broker speaks, to be looked at just after; None if none
        is open.
        """
        return min(self._contacts.values()) + self._timeout_ms if self._contacts else None

    def promised_ms(self, broker_id: int, metadata_offset: int, now_ms: float) -> int:
        """For how long after a heartbeat that is answered now was sent no controller ends its session, in milliseconds.

        This controller will not for a whole timeout. Another one, which may be active by now, was elected after this
        one's leadership was last confirmed, and gave every broker a whole timeout when it began: so what has passed
        since then is taken off. A broker that was fenced, and does not know yet who was elected in its place, is
        promised nothing: it would go on as what it was.

        Args:
            metadata_offset: the last offset that it has applied.
        """
        if metadata_offset < self._brokers[broker_id].unfenced_offset:
            return 0
        left_ms = self._timeout_ms - (now_ms - self._confirmed_ms)
        return int(max(left_ms, 0.0) // _PROMISE_STEP_MS) * _PROMISE_STEP_MS

    def contact_ms(self, broker_id: int, broker_epoch: int) -> float | None:
        """Time of the last heartbeat under this epoch; None = there was none."""
        return self._contacts.get(Session(broker_id, broker_epoch))

    # --- what the controller changes -----------------------------------------------------------------

    def note_contact(self, session: Session, now_ms: float) -> None:
        """A heartbeat has arrived: noted before anybody looks at what it asks for."""
        if session not in self._contacts:
            self._order.add(session)
        self._contacts[session] = now_ms

    def unfenced(self, broker_id: int, last_offset: int) -> None:
        """A broker may lead again. ``last_offset``: of what that wrote."""
        self._brokers[broker_id].unfenced_offset = last_offset

    def leadership_confirmed(self, asked_ms: float) -> None:
        """A majority has said that this controller leads, in answer to what it was asked then or later."""
        self._confirmed_ms = max(self._confirmed_ms, asked_ms)

    def excuse(self, stalled_ms: float, now_ms: float) -> None:
        """This controller was stalled for so long: time in which it could hear nobody does not count."""
        self._contacts = {session: min(at_ms + stalled_ms, now_ms) for session, at_ms in self._contacts.items()}

    def register(self, broker_id: int, is_fenced: bool, registration_offset: int) -> None:
        """A registration was written; ``registration_offset`` is its record's own offset."""
        self._brokers[broker_id] = _BrokerContact(registration_offset, is_fenced)

    def forget(self, broker_id: int) -> None:
        """The broker was unregistered, or is about to be replaced by another incarnation."""
        self._brokers.pop(broker_id, None)

    def touch(self, broker_id: int, is_fenced: bool, metadata_offset: int) -> None:
        """Note the consequences of a heartbeat. Fencing ends a controlled shutdown.

        Args:
            metadata_offset: what the broker has applied; -1 where the heartbeat changed its registration: then what
                it has applied counts from its next heartbeat on.
        """
        broker = self._brokers[broker_id]
        broker.metadata_offset = metadata_offset
        broker.is_fenced = is_fenced
        if is_fenced:
            broker.shutdown_offset = NO_OFFSET

    def stay(self, session: Session, metadata_offset: int, now_ms: float) -> None:
        """A broker said once more what it is: ``note_contact`` and ``touch`` in one, where nothing else changes."""
        self.note_contact(session, now_ms)
        self._brokers[session.broker_id].metadata_offset = metadata_offset

    def drop_session(self, session: Session) -> None:
        """A session that ended has been dealt with."""
        if self._contacts.pop(session, None) is not None:
            self._order.remove(session)

    def fence(self, broker_id: int) -> None:
        """The broker was fenced because its session ended."""
        broker = self._brokers[broker_id]
        broker.is_fenced = True
        broker.shutdown_offset = NO_OFFSET

    def start_shutdown(self, broker_id: int, last_offset: int) -> None:
        """The broker is in controlled shutdown, whose records end at this offset. Only the first call counts."""
        broker = self._brokers[broker_id]
        if broker.shutdown_offset == NO_OFFSET:
            broker.shutdown_offset = last_offset
