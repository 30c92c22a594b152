"""Decides if a history of calls could be that of one object that does them one at a time, each between call and answer.

Wing and Gong's search (1993) with Lowe's memory of states seen (2017), one key at a time as Porcupine does: the object
is a register per topic, and a history over all topics is linearizable if that of each topic is.
A call whose outcome is unknown may take effect at any time after it was made, or never.

Pure: no clock, no chance, nothing of the system that is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

A = TypeVar("A")
S = TypeVar("S", bound=Hashable)

#: Steps of the search after which a history counts as undecided: some seconds.
STEPS_MAX: Final = 2_000_000


class Impossible(Exception):
    """Raised by a model's step: the call cannot have had this outcome in this state."""


class Undecided(Exception):
    """The search was given up."""


@dataclass(frozen=True, slots=True)
class TimedCall(Generic[A]):
    """One call: when it was made, when it was answered (``math.inf``: its outcome is unknown), and what it was."""

    called: float
    answered: float
    #: What was asked, and what was answered: the model knows how to read it.
    action: A

    @property
    def is_known(self) -> bool:
        return self.answered != math.inf


@dataclass(frozen=True, slots=True)
class OrderVerdict(Generic[A]):
    """Of a history."""

    is_linearizable: bool
    #: An order of as many calls of known outcome as could be explained, with those of unknown outcome that it needs.
    order: tuple[TimedCall[A], ...]
    #: Calls of known outcome that were left then.
    left: tuple[TimedCall[A], ...]


class _Entry(Generic[A]):
    """A call or an answer in the list of all, by time."""

    __slots__ = ("after", "before", "bit", "call", "match")

    def __init__(self, call: TimedCall[A] | None, bit: int) -> None:
        self.call = call
        self.bit = bit
        #: Of a call: its answer, if it has one. None on answers.
        self.match: _Entry[A] | None = None
        self.before: _Entry[A] = self
        self.after: _Entry[A] | None = None

    def lift(self) -> None:
        """Take a call and its answer out."""
        for entry in (self,) if self.match is None else (self, self.match):
            entry.before.after = entry.after
            if entry.after is not None:
                entry.after.before = entry.before

    def put_back(self) -> None:
        """Undo ``lift``; the last one first."""
        for entry in (self,) if self.match is None else (self.match, self):
            entry.before.after = entry
            if entry.after is not None:
                entry.after.before = entry


def check(
    calls: Sequence[TimedCall[A]], initial: S, step: Callable[[S, A], S], steps_max: int = STEPS_MAX
) -> OrderVerdict[A]:
    """Search for an order of the calls that explains all outcomes.

    Args:
        step: the state after an action, with its outcome, in a state; raises ``Impossible``.

    Raises:
        Undecided: the search took more than ``steps_max`` steps.
    """
    search = _OrderSearch(calls, initial, step)
    for _ in range(steps_max):
        if not search.left:
            return OrderVerdict(True, search.order(), ())
        if not search.advance():
            ordered = set(map(id, search.best))
            return OrderVerdict(False, search.best, tuple(c for c in calls if c.is_known and id(c) not in ordered))
    raise Undecided(f"{len(calls)} calls, {steps_max} steps")


class _OrderSearch(Generic[A, S]):
    """Depth first over the choices of the next call; what was done, and in which state, is not tried twice."""

    def __init__(self, calls: Sequence[TimedCall[A]], initial: S, step: Callable[[S, A], S]) -> None:
        self._step = step
        self._head = _entries(calls)
        self._entry = self._head.after
        self._state = initial
        self._done = 0
        self._seen: set[tuple[int, S]] = {(0, initial)}
        self._path: list[tuple[_Entry[A], S]] = []
        #: Calls of known outcome that have no place yet.
        self.left = sum(call.is_known for call in calls)
        self._least_left = self.left
        #: The longest order so far.
        self.best: tuple[TimedCall[A], ...] = ()

    def order(self) -> tuple[TimedCall[A], ...]:
        """The calls that have a place."""
        return tuple(entry.call for entry, _ in self._path if entry.call is not None)

    def advance(self) -> bool:
        """Look at one more entry; False when all choices have been tried."""
        entry = self._entry
        if entry is None or entry.call is None:
            # An answer of a call that has no place yet, or the end: the last choice was wrong.
            return self._back()
        try:
            state = self._step(self._state, entry.call.action)
        except Impossible:
            self._entry = entry.after
            return True
        # A call of unknown outcome that would change nothing need not have happened.
        is_useful = entry.call.is_known or state != self._state
        if is_useful and (self._done | entry.bit, state) not in self._seen:
            self._choose(entry, state)
        else:
            self._entry = entry.after
        return True

    def _choose(self, entry: _Entry[A], state: S) -> None:
        assert entry.call is not None
        self._path.append((entry, self._state))
        self._state = state
        self._done |= entry.bit
        self._seen.add((self._done, state))
        self.left -= entry.call.is_known
        entry.lift()
        if self.left < self._least_left:
            self._least_left = self.left
            self.best = self.order()
        self._entry = self._head.after

    def _back(self) -> bool:
        if not self._path:
            return False
        entry, self._state = self._path.pop()
        assert entry.call is not None
        entry.put_back()
        self._done &= ~entry.bit
        self.left += entry.call.is_known
        self._entry = entry.after
        return True


def _entries(calls: Sequence[TimedCall[A]]) -> _Entry[A]:
    """A list of calls and answers in the order of time, behind a head."""
    at: list[tuple[float, int, int, _Entry[A]]] = []
    for number, call in enumerate(calls):
        begun = _Entry(call, 1 << number)
        # Of the same moment, calls come first: nothing says that one had ended before another began.
        at.append((call.called, 0, number, begun))
        if call.is_known:
            begun.match = _Entry(None, 0)
            at.append((call.answered, 1, number, begun.match))
    at.sort(key=lambda item: item[:3])
    head: _Entry[A] = _Entry(None, 0)
    last = head
    for *_, entry in at:
        last.after = entry
        entry.before = last
        last = entry
    return head
