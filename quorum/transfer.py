"""Handing leadership over: no more appends, wait until the successor has everything, tell it to stand at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorum.errors import TransferFailed

Done = Callable[[TransferFailed | None], None]


@dataclass(slots=True)
class _Pending:
    target: int
    deadline: float
    done: Done
    #: Whether the successor was told.
    is_told: bool = False


class Transfer:
    """At most one transfer at a time. While there is one, nothing is appended."""

    def __init__(self) -> None:
        self._pending: _Pending | None = None

    @property
    def target(self) -> int | None:
        """The chosen successor while a transfer is on."""
        return None if self._pending is None else self._pending.target

    @property
    def deadline(self) -> float:
        return float("inf") if self._pending is None else self._pending.deadline

    def begin(self, target: int, deadline: float, done: Done) -> None:
        """Start; ``done`` gets None once this node leads no more, else why leadership stays.

        Raises:
            TransferFailed: one is on already.
        """
        if self._pending is not None:
            raise TransferFailed(target, f"a transfer to node {self._pending.target} is on")
        self._pending = _Pending(target, deadline, done)

    def wants_to_tell(self, *, is_caught_up: bool) -> bool:
        """True once: when the successor has everything and has not been told."""
        pending = self._pending
        if pending is None or pending.is_told or not is_caught_up:
            return False
        pending.is_told = True
        return True

    def expire(self, now: float) -> None:
        """Resume appends if the successor was not elected in time."""
        if self._pending is not None and now >= self._pending.deadline:
            self._finish(TransferFailed(self._pending.target, "it was not elected in time"))

    def lost_leadership(self) -> None:
        """This node leads no more: that is what was asked for."""
        if self._pending is not None:
            self._finish(None)

    def _finish(self, outcome: TransferFailed | None) -> None:
        assert self._pending is not None
        done = self._pending.done
        self._pending = None
        done(outcome)
