"""One broker's way through its life, as a state machine: register, catch up, unfence, run, shut down.

Rules of the file: no clock, no I/O. Every method is told the time (monotonic milliseconds); ``next_command`` says what
to send, at most one request is out at a time, and its answer comes back through ``answered_...`` or ``failed``.
States and the edges between them: ``transitions``. What is reported in a state where it cannot have happened raises
``WrongTransition``, an answer while nothing is out raises ``NothingAsked``; neither changes anything. What is reported
after the end is late, and changes nothing either. States and retry rules: Kafka's ``BrokerLifecycleManager``. What
differs: a broker that the controller does not know registers again instead of repeating itself, and stops when another
process has taken its id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from quorate.broker.lifecycle.lease import LEASE_SHARE, SessionLease
from quorate.broker.lifecycle.transitions import TRANSITIONS, LifecycleEvent, LifecycleState
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.transitions import next_state

#: First wait after a failure; doubled by each further one (Kafka's ``resendExponentialBackoff``).
RETRY_FIRST_MS: Final = 100.0
#: A broker that is still behind asks again soon: the answer changes when it has replayed its own registration.
CATCH_UP_INTERVAL_MS: Final = 10.0
#: The first answer to a broker that wants to leave only says that the move has begun.
SHUTDOWN_FIRST_MS: Final = 50.0
#: Share of an interval by which it may be shorter, so that brokers started together drift apart.
JITTER: Final = 0.1

#: Registration errors that no waiting heals.
_FINAL_REGISTRATION_ERRORS: Final = frozenset(
    {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REGISTRATION, ErrorCode.UNSUPPORTED_VERSION}
)
#: Heartbeat errors that say: the controller has no such registration.
_UNKNOWN_TO_CONTROLLER: Final = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED})


@dataclass(frozen=True, slots=True)
class LifecycleTiming:
    """Intervals, in milliseconds."""

    heartbeat_interval_ms: float
    #: Longest wait between two tries of a failing request.
    retry_max_ms: float
    #: A broker that could not register for the first time by then fails.
    registration_timeout_ms: float
    #: A broker that nobody relieved of its leaderships by then leaves all the same.
    shutdown_timeout_ms: float
    #: A broker whose failed log directory no controller has heard of by then fails.
    directory_failure_timeout_ms: float


@dataclass(frozen=True, slots=True)
class SendRegistration:
    """Ask for a registration. ``previous_epoch``: the one this process had before, -1 = none."""

    previous_epoch: int


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Say that the broker lives, and what it wants. The applied offset is added when it leaves."""

    broker_epoch: int
    wants_fence: bool
    wants_shutdown: bool


Command = SendRegistration | SendHeartbeat


class NothingAsked(RuntimeError):
    """An answer is reported while no request is out: a mistake in the code. Nothing was changed."""


class BrokerLifecycle:
    """See the module's rules. ``draw`` gives numbers in [0, 1) for jitter."""

    def __init__(
        self, broker_id: int, incarnation_id: Uuid, timing: LifecycleTiming, now_ms: float, draw: Callable[[], float]
    ) -> None:
        self.broker_id = broker_id
        self.incarnation_id = incarnation_id
        self._state = LifecycleState.REGISTERING
        #: -1 = not registered yet.
        self.broker_epoch = -1
        #: Why it failed, in a sentence; None unless FAILED.
        self.failure: str | None = None
        #: STOPPED only: whether the controller said that nothing depends on this broker any more.
        self.is_clean_stop = False
        #: Last failure of a request, None after a success; for people.
        self.trouble: str | None = None
        self.registration_count = 0
        #: When the controller last answered; None = never.
        self.answered_at_ms: float | None = None
        #: Until when it can count on its session.
        self.lease = SessionLease()
        #: That sessions end before the next heartbeat comes; None: they do not, as far as is known.
        self._rarity: str | None = None
        self._sent_ms = now_ms
        self._timing = timing
        self._draw = draw
        self._next_ms = now_ms
        self._registration_deadline_ms: float | None = now_ms + timing.registration_timeout_ms
        self._shutdown_deadline_ms: float | None = None
        self._shutdown_interval_ms = SHUTDOWN_FIRST_MS
        #: Log directories that have failed: by when a controller must have heard of it, None once it has.
        self._failed_directories: dict[Uuid, float | None] = {}
        self._is_in_flight = False
        self._is_ready_to_unfence = False
        self._must_register_again = False
        self._failures = 0

    @property
    def state(self) -> LifecycleState:
        """The state of the broker."""
        return self._state

    @property
    def is_over(self) -> bool:
        """Whether nothing will be sent any more."""
        return self.state in (LifecycleState.STOPPED, LifecycleState.FAILED)

    @property
    def is_running(self) -> bool:
        """Whether the controller has unfenced it, and it does not want to leave."""
        return self.state is LifecycleState.RUNNING

    @property
    def is_registered(self) -> bool:
        """Whether it holds a broker epoch that nobody has disputed."""
        return self.broker_epoch >= 0 and self.state is not LifecycleState.REGISTERING

    # --- what to do ----------------------------------------------------------------------------------

    def next_command(self, now_ms: float) -> Command | None:
        """The command to send now. None: nothing before ``next_wake_ms``, or an answer is due, or it is over."""
        self._check_deadlines(now_ms)
        if self.is_over or self._is_in_flight or now_ms < self._next_ms:
            return None
        self._is_in_flight, self._sent_ms = True, now_ms
        if self._must_register_again and self.state is not LifecycleState.CONTROLLED_SHUTDOWN:
            self._take(LifecycleEvent.MUST_REGISTER_AGAIN)
        self._must_register_again = False
        if self.state is LifecycleState.REGISTERING:
            return SendRegistration(self.broker_epoch)
        return SendHeartbeat(
            self.broker_epoch,
            wants_fence=not self._is_ready_to_unfence,
            wants_shutdown=self.state is LifecycleState.CONTROLLED_SHUTDOWN,
        )

    def next_wake_ms(self) -> float | None:
        """The time to ask again if nothing happens before; None if only an answer or an event can help."""
        if self.is_over:
            return None
        known = (self._registration_deadline_ms, self._shutdown_deadline_ms, *self._failed_directories.values())
        deadlines = [at for at in known if at is not None]
        if not self._is_in_flight:
            deadlines.append(self._next_ms)
        return min(deadlines, default=None)

    # --- what happened -------------------------------------------------------------------------------

    def answered_registration(self, now_ms: float, broker_epoch: int) -> None:
        """The controller gave (or confirmed) a broker epoch.

        Raises:
            WrongTransition: it is registered already. NothingAsked.
        """
        if self.is_over:
            return
        self._check_asked("an answer to a registration")
        is_leaving = self._shutdown_deadline_ms is not None
        self._take(LifecycleEvent.REGISTERED_TO_LEAVE if is_leaving else LifecycleEvent.REGISTERED)
        self._succeeded(now_ms)
        if broker_epoch != self.broker_epoch:
            self.lease.end()
        self.broker_epoch = broker_epoch
        self.registration_count += 1
        self._registration_deadline_ms = None
        self._next_ms = now_ms

    def answered_heartbeat(
        self,
        now_ms: float,
        *,
        is_caught_up: bool,
        is_fenced: bool,
        should_shut_down: bool,
        session_ms: int = 0,
        told_failed: Collection[Uuid] = (),
    ) -> None:
        """The controller's view of this broker, and the failed log directories that the heartbeat named.

        Args:
            session_ms: what is promised of its session, from when the heartbeat was sent; 0 = nothing.

        Raises:
            WrongTransition: it is not registered. NothingAsked.
        """
        if self.is_over:
            return
        self._check_asked("an answer to a heartbeat")
        was = self.state
        self._take(_view(is_caught_up=is_caught_up, is_fenced=is_fenced))
        self._succeeded(now_ms)
        if is_fenced:
            self.lease.end()
        else:
            self.lease.extend(self._sent_ms, session_ms)
        self._failed_directories |= dict.fromkeys(told_failed)
        interval = self._timing.heartbeat_interval_ms
        if session_ms:
            self._rarity = _rarity(interval, session_ms)
        self.trouble = self._rarity
        self._next_ms = now_ms + interval * (1 - JITTER * self._draw())
        if self.state is LifecycleState.CONTROLLED_SHUTDOWN:
            if should_shut_down:
                self._leave(is_clean=True)
            else:
                self._next_ms = now_ms + min(self._shutdown_interval_ms, interval)
                self._shutdown_interval_ms *= 2
        elif self.state is LifecycleState.CATCHING_UP:
            self._next_ms = now_ms + min(CATCH_UP_INTERVAL_MS, interval)
        elif self.state is LifecycleState.FENCED and was is LifecycleState.CATCHING_UP and self._is_ready_to_unfence:
            self._next_ms = now_ms  # it may be unfenced at once
        elif not (is_fenced or session_ms):
            self._next_ms = now_ms + min(RETRY_FIRST_MS, interval)  # it has nothing to count on until it has caught up
        if any(deadline is not None for deadline in self._failed_directories.values()):
            self._next_ms = now_ms  # it failed while the heartbeat was under way

    def failed(self, now_ms: float, code: ErrorCode | None, message: str) -> None:
        """The request that was out failed. ``code`` is the controller's; None = no answer, the outcome is unknown.

        Raises:
            NothingAsked.
        """
        if self.is_over:
            return
        self._check_asked("the failure of a request")
        self._is_in_flight = False
        self.trouble = message
        if self.state is LifecycleState.REGISTERING:
            self._registration_failed(code, message)
        elif code in _UNKNOWN_TO_CONTROLLER:
            self._forgotten()
        if not self.is_over:
            wait = min(RETRY_FIRST_MS * 2.0**self._failures, self._timing.retry_max_ms)
            self._failures = min(self._failures + 1, 30)
            self._next_ms = now_ms + wait * (1 - JITTER * self._draw())

    def ready_to_unfence(self, now_ms: float) -> None:
        """This broker could serve."""
        self._is_ready_to_unfence = True
        if self.state is LifecycleState.FENCED:
            self._next_ms = now_ms

    def hold_unfencing(self, now_ms: float) -> None:
        """This broker cannot serve any more: with its next heartbeat it asks to be fenced, so that others lead."""
        self._is_ready_to_unfence = False
        self.speak_at_once(now_ms)

    def speak_at_once(self, now_ms: float) -> None:
        """There is something new to say with a heartbeat; one that is not registered has no heartbeats."""
        if self.is_registered:
            self._next_ms = now_ms

    def register_again(self, now_ms: float) -> None:
        """The registration lacks something; as the same incarnation it is amended, and stays fenced or unfenced."""
        self._must_register_again = True
        self._next_ms = min(self._next_ms, now_ms)

    def directories_failed(self, now_ms: float, directories: Collection[Uuid]) -> None:
        """These have failed by now; of each the next heartbeat tells. One that cannot tell it in time ends the broker,
        as Kafka's ``log.dir.failure.timeout.ms`` ends it: it would be taken to have what it has lost."""
        deadline_ms = now_ms + self._timing.directory_failure_timeout_ms
        for directory in directories:
            if directory not in self._failed_directories:
                self._failed_directories[directory] = deadline_ms
                self.speak_at_once(now_ms)

    def lost_all_directories(self) -> None:
        """It ends without a word, as Kafka's does: its session's end tells the controllers."""
        if not self.is_over:
            self._fail(f"all log directories of broker {self.broker_id} have failed")

    def begin_shutdown(self, now_ms: float) -> None:
        """Leave as soon as nothing depends on this broker. Asked twice, it leaves at once."""
        if self.is_over:
            return
        if self.state is LifecycleState.REGISTERING and not self._is_in_flight:
            self._leave(is_clean=True)  # no controller knows of it
            return
        if self._shutdown_deadline_ms is not None:
            self._leave(is_clean=False)
            return
        self._take(LifecycleEvent.WANTS_TO_LEAVE)
        self._shutdown_deadline_ms = now_ms + self._timing.shutdown_timeout_ms
        self._next_ms = now_ms

    def saw_registration(self, broker_epoch: int, incarnation_id: Uuid) -> None:
        """The image has this registration for the broker's id. A later one of another incarnation ends this broker."""
        if self.is_over or self.broker_epoch < 0:
            return
        if incarnation_id != self.incarnation_id and broker_epoch > self.broker_epoch:
            self._fail(f"another process has registered as broker {self.broker_id} (broker epoch {broker_epoch})")

    # --- what follows from it ------------------------------------------------------------------------

    def _take(self, event: LifecycleEvent) -> None:
        """The one place where the state changes."""
        self._state = next_state(TRANSITIONS, self._state, event)

    def _check_asked(self, what: str) -> None:
        if not self._is_in_flight:
            raise NothingAsked(f"broker {self.broker_id} is {self.state.value}: {what}, and none is out")

    def _succeeded(self, now_ms: float) -> None:
        self._is_in_flight = False
        self._failures = 0
        self.trouble = None
        self.answered_at_ms = now_ms

    def _registration_failed(self, code: ErrorCode | None, message: str) -> None:
        if self._shutdown_deadline_ms is not None and code is not None:
            self._leave(is_clean=True)  # refused, and it did not want to stay
        elif code in _FINAL_REGISTRATION_ERRORS:
            self._fail(f"the controller refuses broker {self.broker_id}: {message}")
        elif code is ErrorCode.DUPLICATE_BROKER_REGISTRATION and self.broker_epoch >= 0:
            # At the first registration this is a predecessor whose session still has to end; now it is a successor.
            self._fail(f"another process has registered as broker {self.broker_id}: {message}")

    def _forgotten(self) -> None:
        """The controller does not know this registration (any more)."""
        self._take(LifecycleEvent.FORGOTTEN)
        self.lease.end()
        self.is_clean_stop = self.state is LifecycleState.STOPPED

    def _check_deadlines(self, now_ms: float) -> None:
        if self.is_over:
            return
        if self._shutdown_deadline_ms is not None and now_ms >= self._shutdown_deadline_ms:
            self._leave(is_clean=False)
        elif self._registration_deadline_ms is not None and now_ms >= self._registration_deadline_ms:
            seconds = self._timing.registration_timeout_ms / 1000
            reason = self.trouble or "no controller answered"
            self._fail(f"broker {self.broker_id} could not register within {seconds:g} s: {reason}")
        for directory, deadline_ms in self._failed_directories.items():
            if deadline_ms is not None and now_ms >= deadline_ms and not self.is_over:
                self._fail(self._untold(directory))

    def _untold(self, directory: Uuid) -> str:
        seconds = self._timing.directory_failure_timeout_ms / 1000
        what = f"that its log directory {uuid_text(directory)} has failed"
        reason = self.trouble or "no controller answered"
        return f"broker {self.broker_id} could not tell the controllers within {seconds:g} s {what}: {reason}"

    def _leave(self, *, is_clean: bool) -> None:
        self._take(LifecycleEvent.LEAVES)
        self.lease.end()
        self.is_clean_stop = is_clean

    def _fail(self, reason: str) -> None:
        self._take(LifecycleEvent.FAILS)
        self.lease.end()
        self.failure = reason


def _rarity(interval_ms: float, session_ms: int) -> str | None:
    if LEASE_SHARE * session_ms > interval_ms:
        return None
    return (
        f"heartbeats come every {interval_ms:g} ms and a session lasts {session_ms} ms: lifecycle.heartbeat_interval_ms"
        " is to be half of the controllers' brokers.session_timeout_ms at most"
    )


def _view(*, is_caught_up: bool, is_fenced: bool) -> LifecycleEvent:
    """The event in an answer to a heartbeat."""
    if not is_fenced:
        return LifecycleEvent.UNFENCED
    return LifecycleEvent.CAUGHT_UP if is_caught_up else LifecycleEvent.BEHIND
