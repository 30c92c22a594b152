"""A pass over many partitions: slice by slice, one a turn of the loop, and nothing else is decided in between.

The sockets get their share between two slices, so an epoch can end there. Each slice was decided on the head of its
turn, so what is written up to then holds; the next leader derives from its own head what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.controller.decisions.decision import Slice
from quorate.controller.engine.event_queue import Event, EventQueue
from quorate.metadata_log.errors import ErrorCode, NotController, OutcomeUnknown


class MassPass:
    """One pass, as an event that puts itself at the front of the queue again until it is done. Owned by the loop."""

    def __init__(
        self,
        name: str,
        slices: Sequence[Slice],
        events: EventQueue,
        is_current: Callable[[], bool],
        write: Callable[[Slice], None],
        finish: Callable[[], None],
        give_up: Callable[[Exception, Callable[[Exception], None]], object],
        fail: Callable[[Exception], None],
    ) -> None:
        """Take what the controller lends to it.

        Args:
            is_current: whether the epoch it began in goes on.
            write: lets a slice join the head, in a batch of its own.
            finish: all of it is part of the head.
            give_up: what the controller does about an error, which resigns; it tells the client by its second argument.
            fail: the client's answer.
        """
        self._name = name
        self._waiting = list(reversed(slices))
        self._has_written = False
        self._events = events
        self._is_current = is_current
        self._write = write
        self._finish = finish
        self._give_up = give_up
        self._fail = fail

    def run(self) -> None:
        """The next slice."""
        if not self._is_current():
            self._cut(NotController(None, "leadership was lost"))
            return
        try:
            self._write(self._waiting[-1])
            self._has_written = True
            self._waiting.pop()
            if not self._waiting:
                self._finish()
        except Exception as error:  # noqa: BLE001 - the controller classifies it; half a pass cannot be taken back
            self._give_up(error, self._cut)
            return
        if self._waiting:
            self._events.prepend(Event(self._name, self.run, self._cut))
            self._events.end_turn()

    def _cut(self, error: Exception) -> None:
        """A refusal says that nothing was changed: it is none once a slice was written."""
        if self._has_written:
            message = f"{self._name} was cut and may have been written in part: {error}; read before repeating it"
            error = OutcomeUnknown(message, ErrorCode.NOT_CONTROLLER)
        self._fail(error)
