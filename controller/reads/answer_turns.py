"""Turns for answers that rehearse: one at a time, on a thread, for as long as whoever asks would wait.

What is rehearsed takes as long as the state is large and as many events are named, seconds of a core where both are
many. So a few may wait for their turn, fewer of one principal, and none goes on when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from quorate.controller.reads.read_turns import run_in_turn
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from quorate.metadata_log.steady_clock import steady_ms

#: Answers that are made or wait for their turn, and those of one principal.
ANSWERS_MAX: Final = 16
ANSWERS_OF_ONE_MAX: Final = 4

T = TypeVar("T")
#: Called between two steps of the work, however small, on the thread that does it. Raises where it is to end.
Check = Callable[[], None]


class AnswerTurns:
    """Of one controller."""

    def __init__(self, now_ms: Callable[[], float] = steady_ms) -> None:
        self._now_ms = now_ms
        self._lock = asyncio.Lock()
        #: By principal; None: nodes, and everybody where nobody is asked.
        self._asked: Counter[str | None] = Counter()

    async def answer(self, principal: str | None, limit_ms: float, work: Callable[[Check], T]) -> T:
        """The result of ``work``, when its turn has come.

        Raises:
            Overloaded: too many wait already. Else as ``run``.
        """
        with self.place(principal):
            return await self.run(limit_ms, work)

    @contextmanager
    def place(self, principal: str | None) -> Iterator[None]:
        """A place in the line, for as long as the block runs: what an answer needs is fetched by who has one.

        Raises:
            Overloaded: too many wait already.
        """
        if self._asked.total() >= ANSWERS_MAX:
            message = f"{self._asked.total()} answers wait to be rehearsed, {ANSWERS_MAX} is the most"
            raise Overloaded(message, "answers")
        if principal is not None and self._asked[principal] >= ANSWERS_OF_ONE_MAX:
            message = f"{ANSWERS_OF_ONE_MAX} answers for {principal} wait to be rehearsed: no more may"
            raise Overloaded(message, "answers")
        self._asked[principal] += 1
        try:
            yield
        finally:
            self._asked[principal] -= 1
            self._asked += Counter()

    async def run(self, limit_ms: float, work: Callable[[Check], T]) -> T:
        """The result of the ``work`` of one who has a place, when its turn has come.

        Raises:
            ApiError: REQUEST_TIMED_OUT, it was not done in time; whatever ``work`` raises.
        """
        ends_at, is_over = self._now_ms() + limit_ms, False

        def check() -> None:
            if is_over or self._now_ms() > ends_at:
                message = f"the answer was not rehearsed within {limit_ms:.0f} ms: ask about less at once"
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)

        def run() -> T:
            check()
            return work(check)

        try:
            return await run_in_turn(run, self._lock)
        finally:
            is_over = True
