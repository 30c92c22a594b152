"""An asyncio event loop in virtual time: one for each simulated process.

What is ready runs in one turn, some microseconds after it became so; timers and finished threads are events of the
world. A process that is frozen has a loop that does not turn; one that died has a loop that never turns again, so that
not even a ``finally`` of it runs: that is what a crash is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from itertools import count
from random import Random
from typing import Any, Final, TypeVar

from quorate.scripts.simulation.machine.scheduler import VirtualScheduler

T = TypeVar("T")

#: Longest time from an event to the turn of the loop that it belongs to, and longest run of a thread; seconds.
_TURN_SECONDS: Final = 0.0002
_THREAD_SECONDS: Final = 0.003
#: Turns in which a cancelled task ends, whatever it still awaits on its way out.
_BURIAL_TURNS: Final = 20


class VirtualTask(asyncio.Task[T]):
    """A task whose place in a set depends on when it was made, and not on where it lies in memory."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: VirtualLoop, number: int, context: Context | None):
        self._number = number
        super().__init__(coroutine, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module. ``rate``: how fast this process's clock goes. ``on_trouble`` is told what nobody caught."""

    #: Local clocks do not begin at zero.
    CLOCK_BEGIN: Final = 100.0

    def __init__(
        self,
        scheduler: VirtualScheduler,
        rng: Random,
        who: str,
        rate: float,
        on_trouble: Callable[[str], None],
        after_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheduler = scheduler
        self._rng = rng
        #: The process, for people.
        self.who = who
        self._rate = rate
        self._on_trouble = on_trouble
        self._after_turn = after_turn
        self._ready: deque[asyncio.Handle] = deque()
        self._numbers = count()
        #: Everything that was ever begun: what a dead process leaves must not be collected while the run goes on.
        self._tasks: list[VirtualTask[Any]] = []
        self._is_turn_due = False
        self.is_frozen = False
        self.is_dead = False
        self._is_buried = False

    # --- the process ---------------------------------------------------------------------------------

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Run something as an event of this loop."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def freeze(self) -> None:
        """SIGSTOP."""
        self.is_frozen = True

    def thaw(self) -> None:
        """SIGCONT: timers that are due and sockets that can be read are handled in one turn."""
        self.is_frozen = False
        self._want_turn()

    def die(self) -> None:
        """Nothing of this process runs any more."""
        self.is_dead = True

    def bury(self) -> None:
        """At the end of a run: let tasks that still wait end, in no time and unheard."""
        self._is_buried = True
        with self.entered():
            for task in self._tasks:
                task.cancel()
            for _ in range(_BURIAL_TURNS):
                for _ in range(len(self._ready)):
                    handle = self._ready.popleft()
                    if not handle.cancelled():
                        handle._run()
        self._ready.clear()
        self._tasks.clear()

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task from outside."""
        with self.entered():
            return self.create_task(coroutine)

    # --- what asyncio needs --------------------------------------------------------------------------

    def time(self) -> float:
        return self.CLOCK_BEGIN + self._scheduler.now * self._rate

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self.is_dead

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = VirtualTask(coro, self, next(self._numbers), context)
        self._tasks.append(task)
        if self._is_buried:
            task.cancel()
        return task

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        self._want_turn()
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if not (self.is_dead or self._is_buried):
            self._scheduler.after(max(when - self.time(), 0.0) / self._rate + 1e-6, self._due, timer)
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Work of a thread: done after a while, in one go."""
        future = self.create_future()
        self._scheduler.after(self._rng.uniform(0.0, _THREAD_SECONDS), self._thread_done, future, func, args)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not (self.is_dead or self._is_buried):
            self._on_trouble(f"{context.get('message')}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Its event comes, and does nothing."""

    # --- events --------------------------------------------------------------------------------------

    def _want_turn(self) -> None:
        if not (self._is_turn_due or self.is_frozen or self.is_dead or self._is_buried):
            self._is_turn_due = True
            self._scheduler.after(self._rng.uniform(0.0, _TURN_SECONDS), self._turn)

    def _turn(self) -> None:
        self._is_turn_due = False
        if self._is_halted():
            return
        with self.entered():
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
                if self._is_halted():
                    return
        if self._ready:
            self._want_turn()
        self._after_turn()

    def _is_halted(self) -> bool:
        return self.is_dead or self.is_frozen

    def _due(self, timer: asyncio.TimerHandle) -> None:
        if not self.is_dead and not timer.cancelled():
            self._ready.append(timer)
            self._want_turn()

    def _thread_done(self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.is_dead:
            return
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the waiter's
            self.call_soon(_settle, future, error, None)
        else:
            self.call_soon(_settle, future, None, result)


def _settle(future: asyncio.Future[Any], error: Exception | None, result: object) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
