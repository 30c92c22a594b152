"""The progress of moves: how many have ended, how fast, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, NamedTuple, Self

from quorate.scripts.terminal.progress.amounts import rate
from quorate.scripts.terminal.progress.line import ProgressLine, telling

_NAMED_MAX: Final = 3


class Stall(NamedTuple):
    """Moves that take long, and the broker that does not catch up."""

    broker: int
    state: str
    #: As `topic-number`.
    partitions: Sequence[str]

    @property
    def words(self) -> str:
        """The sentence about them."""
        why = f"is {self.state}" if self.state != "active" else "has not caught up"
        verb = "waits" if len(self.partitions) == 1 else "wait"
        return f"{_first_names(self.partitions)} {verb} for broker {self.broker}, which {why}"

    @property
    def short(self) -> str:
        """The same in few words."""
        verb = "waits" if len(self.partitions) == 1 else "wait"
        why = self.state if self.state != "active" else "not caught up"
        return f"{len(self.partitions):,} {verb} for broker {self.broker}, {why}"


class MoveProgress:
    """Shows how many moves have ended, how fast, how long it takes, and what stalls."""

    def __init__(self) -> None:
        self._ended = self._total = self._under_way = 0
        self._stalls: Sequence[Stall] = ()
        self._is_held = False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._line: ProgressLine = self._stack.enter_context(telling(self.words))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def words(self, seconds: float) -> str:
        """The progress after so many seconds; what stalls comes early, as a narrow terminal shows the begin."""
        stalls = "".join(f"; {stall.short}" for stall in self._stalls)
        speed = rate(self._ended, self._total, seconds)
        return f"{self._ended:,} of {self._total:,} moved{stalls}; {self._under_way:,} under way{speed}"

    def show(self, ended: int, total: int, under_way: int, stalls: Sequence[Stall], others: Sequence[str] = ()) -> None:
        """Take a look: the line tells of it when it is time, and what is new and stalls is said at once.

        ``others``: the partitions, as `topic-number`, whose moves by others leave no room for any of these to begin.
        """
        self._ended, self._total, self._under_way = ended, total, under_way
        known = {stall.broker for stall in self._stalls}
        self._stalls = tuple(stalls)
        if not {stall.broker for stall in stalls} <= known:
            for stall in stalls:
                self._line.say(stall.words)
        if others and not self._is_held:
            self._line.say(
                "nothing can begin: as many reassignments as --at-once allows are open, those of others: "
                f"{_first_names(others)}"
            )
        self._is_held = bool(others)


def _first_names(partitions: Sequence[str]) -> str:
    more = f" and {len(partitions) - _NAMED_MAX:,} more" if len(partitions) > _NAMED_MAX else ""
    return ", ".join(partitions[:_NAMED_MAX]) + more
