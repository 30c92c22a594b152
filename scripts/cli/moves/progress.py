"""The progress of moves on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

#: Seconds between two lines where there is no terminal.
_PAUSE_S: Final = 10.0
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
        return f"{_first_names(self.partitions)} wait for broker {self.broker}, which {why}"


class MoveProgress:
    """Shows how many moves have ended, how fast, how long it takes, and what stalls."""

    def __init__(self) -> None:
        # Commands that only ask do not wait for it to be imported.
        from rich.progress import BarColumn, Progress, TextColumn

        from quorate.scripts.terminal.screen import Screen

        self._bar = Progress(
            BarColumn(), TextColumn("{task.description}"), console=Screen(stderr=True), disable=not sys.stderr.isatty()
        )
        self._task = self._bar.add_task("", total=None)
        self._began = time.monotonic()
        self._said_at = self._began
        self._stalled: frozenset[int] = frozenset()
        self._is_held = False

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def show(self, ended: int, total: int, under_way: int, stalls: Sequence[Stall], others: Sequence[str] = ()) -> None:
        """Show a look: on a terminal at once, elsewhere when it is time or something new stalls.

        ``others``: the partitions, as `topic-number`, whose moves by others leave no room for any of these to begin.
        """
        now = time.monotonic()
        words = progress_words(ended, total, under_way, now - self._began)
        self._bar.update(self._task, completed=ended, total=total, description=words)
        stalled = frozenset(stall.broker for stall in stalls)
        is_new = not stalled <= self._stalled
        self._stalled = stalled
        if is_new:
            for stall in stalls:
                self._say(stall.words)
        if others and not self._is_held:
            self._say(
                "nothing can begin: as many reassignments as --at-once allows are open, those of others: "
                f"{_first_names(others)}"
            )
        self._is_held = bool(others)
        if self._bar.disable and (is_new or now - self._said_at >= _PAUSE_S):
            self._said_at = now
            self._say(words)

    def _say(self, words: str) -> None:
        # Through the bar where there is one, which goes on below.
        if self._bar.disable:
            sys.stderr.write(f"quorate: {words}\n")
            sys.stderr.flush()
        else:
            self._bar.console.print(f"quorate: {words}")


def _first_names(partitions: Sequence[str]) -> str:
    more = f" and {len(partitions) - _NAMED_MAX} more" if len(partitions) > _NAMED_MAX else ""
    return ", ".join(partitions[:_NAMED_MAX]) + more


def progress_words(ended: int, total: int, under_way: int, seconds: float) -> str:
    """The progress after so many seconds; with a rate, and the time that is left, once a move has ended."""
    words = f"{ended} of {total} moved, {under_way} on their way"
    if not ended or seconds <= 0:
        return words
    rate = ended / seconds
    left = round((total - ended) / rate)
    return f"{words}, {rate:.1f} a second, about {left // 60} min {left % 60} s left"
