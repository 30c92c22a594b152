"""The controller's event queue: FIFO with a front door, a lane for what is urgent, deadlines, and timers by tag.

Kafka's ``KafkaEventQueue``, on an event loop instead of a thread: events run one at a time, in turns of bounded
length, so that the sockets get their share between turns. Time and wake-ups come from a ``Scheduler``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from quorate.controller.engine.queue_pace import QueuePace
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded

#: Events one turn runs at most, and so has in one batch: what a batch costs on all controllers is shared by that many.
#: A small one takes some 30 us; where they take longer, time ends the turn.
EVENTS_PER_TURN_MAX: Final = 256
#: No event is begun in a turn that has taken this long: bulk requests take tens of milliseconds each, and a handful in
#: one turn would keep the heartbeats of the quorum waiting for an election timeout.
TURN_MS_MAX: Final = 10.0
#: Urgent events that run in a row, however many there are, while others wait.
URGENT_IN_A_ROW_MAX: Final = 32


class Timer(Protocol):
    """A wake-up that can be taken back."""

    def cancel(self) -> None:
        """Never call back."""


class Scheduler(Protocol):
    """Clock and wake-ups: the event loop in production, virtual time in a simulation."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back after a delay."""

    def monotonic_ms(self) -> float:
        """For intervals and deadlines."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for record times only."""


@dataclass(slots=True)
class Event:
    """Something to run, and what to do where it cannot be."""

    name: str
    run: Callable[[], None]
    fail: Callable[[Exception], None]
    #: Monotonic; an event that has not started by then is failed. None = never.
    deadline_ms: float | None = None
    #: Counts against the queue's limit; internal events never do.
    is_external: bool = False
    #: Runs before all that are not: whoever asks lives by the answer, and it costs little.
    is_urgent: bool = False
    queued_at_ms: float = field(default=0.0)


class EventQueue:
    """Events in order. ``after_turn`` is called once after each turn that ran something."""

    def __init__(self, scheduler: Scheduler, length_max: int, after_turn: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._length_max = length_max
        self._after_turn = after_turn
        self._events: deque[Event] = deque()
        self._urgent: deque[Event] = deque()
        #: Before both of them.
        self._front: deque[Event] = deque()
        self._urgent_run = 0
        self._timers: dict[str, tuple[float, Timer]] = {}
        self._is_woken = False
        self._is_closed = False
        self._ends_turn = False
        self.external_count = 0
        #: Of external events: what their turns take, with what the loop does between two of them.
        self._pace = QueuePace()
        #: When the last turn began and how many external events it ran, where it left some; None: it left none.
        self._last_turn: tuple[float, int] | None = None
        #: Events that were failed because they had waited too long, by name.
        self.timed_out: Counter[str] = Counter()
        #: Name of the event that runs, or that ran last, and when it began.
        self.running = ""
        self.began_ms = 0.0
        self.observe: Callable[[str, float, float], None] | None = None

    def __len__(self) -> int:
        return len(self._front) + len(self._urgent) + len(self._events)

    @property
    def next_name(self) -> str | None:
        """Name of the event that runs next, which may be the rest of a pass; None when nothing waits."""
        due = self._due
        return due[0].name if due else None

    def append(self, event: Event) -> None:
        """Queue an event behind all others of its kind.

        Raises:
            Overloaded: too many external events wait already; nothing was queued.
        """
        if event.is_external and self.external_count >= self._length_max:
            message = f"{self.external_count} requests are waiting, {self._length_max} is the most"
            wait_ms = self._pace.come_again_ms(self.external_count, self._scheduler.monotonic_ms())
            raise Overloaded(message, "event_queue", wait_ms)
        self._queue(event, self._urgent if event.is_urgent else self._events)

    def prepend(self, event: Event) -> None:
        """Queue an event before all others: an activation, or the rest of a pass that must not be interrupted."""
        self._queue(event, self._front)

    def _queue(self, event: Event, into: deque[Event]) -> None:
        if self._is_closed:
            event.fail(ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller is shutting down"))
            return
        event.queued_at_ms = self._scheduler.monotonic_ms()
        self.external_count += event.is_external
        if into is self._front:
            into.appendleft(event)
        else:
            into.append(event)
        self._wake()

    def schedule(self, tag: str, at_ms: float, make: Callable[[], Event], *, keep_earlier: bool = True) -> None:
        """Queue an event at a monotonic time. One timer a tag: the earlier of two stays, or else the later one."""
        known = self._timers.get(tag)
        if known is not None:
            if keep_earlier and known[0] <= at_ms:
                return
            known[1].cancel()

        def due() -> None:
            del self._timers[tag]
            self.append(make())

        delay_ms = max(0.0, at_ms - self._scheduler.monotonic_ms())
        self._timers[tag] = (at_ms, self._scheduler.call_later(delay_ms, due))

    def is_scheduled(self, tag: str) -> bool:
        """Whether the timer of this tag is set."""
        return tag in self._timers

    def cancel(self, tag: str) -> None:
        """Forget the timer of this tag, if there is one."""
        known = self._timers.pop(tag, None)
        if known is not None:
            known[1].cancel()

    def end_turn(self) -> None:
        """Let the sockets have their share once the running event is done."""
        self._ends_turn = True

    def close(self) -> None:
        """Fail what waits, and everything that comes later."""
        self._is_closed = True
        for tag in list(self._timers):
            self.cancel(tag)
        waiting = [*self._front, *self._urgent, *self._events]
        for emptied in (self._front, self._urgent, self._events):
            emptied.clear()
        self.external_count = 0
        for event in waiting:
            event.fail(ApiError(ErrorCode.REQUEST_TIMED_OUT, "the controller is shutting down"))

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._scheduler.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_woken = self._ends_turn = False
        now = begun = self._scheduler.monotonic_ms()
        if self._last_turn is not None:
            self._pace.note(begun - self._last_turn[0], self._last_turn[1])
        ends_at = now + TURN_MS_MAX
        waiting = self.external_count
        try:
            for _ in range(EVENTS_PER_TURN_MAX):
                if not len(self) or self._ends_turn or now >= ends_at:
                    break
                now = self._run(self._next(), now)
        finally:
            # An event deals with its own failures. One that does not must not hold up the others.
            self._last_turn = (begun, waiting - self.external_count) if self.external_count else None
            self._after_turn()
            if len(self):
                self._wake()

    @property
    def _due(self) -> deque[Event]:
        """Those of which the first runs next; empty: nothing waits."""
        if self._front:
            return self._front
        is_urgent = self._urgent and (not self._events or self._urgent_run < URGENT_IN_A_ROW_MAX)
        return self._urgent if is_urgent else self._events

    def _next(self) -> Event:
        due = self._due
        if due is not self._front:
            self._urgent_run = self._urgent_run + 1 if due is self._urgent else 0
        return due.popleft()

    def _run(self, event: Event, now: float) -> float:
        """The time when it is done."""
        self.external_count -= event.is_external
        if event.deadline_ms is not None and now > event.deadline_ms:
            self.timed_out[event.name] += 1
            message = f"{event.name} waited {now - event.queued_at_ms:.0f} ms and was not started: nothing was changed"
            event.fail(ApiError(ErrorCode.REQUEST_TIMED_OUT, message))
            return now
        self.running, self.began_ms = event.name, now
        event.run()
        done_at = self._scheduler.monotonic_ms()
        if self.observe is not None:
            self.observe(event.name, now - event.queued_at_ms, done_at - now)
        return done_at
