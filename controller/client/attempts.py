"""The order of attempts: controllers in turn, from the one that served last, round after round until time is up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from quorate.controller.api import headers
from quorate.controller.api.errors import retry_after_ms
from quorate.controller.client.answered_while import answered_while
from quorate.controller.client.connection import (
    Answer,
    BrokeOff,
    Connection,
    NoAnswer,
    NodeState,
    NotAController,
    NotSent,
    Request,
    Untrusted,
)
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown, Overloaded

#: Between two rounds over all controllers: an election takes tens of milliseconds, at worst a second.
_PAUSE_FIRST_SECONDS: Final = 0.02
_PAUSE_SECONDS_MAX: Final = 0.25
#: What is sent with less time left would come back unanswered, and a write of unknown outcome for nothing.
_SEND_MS_MIN: Final = 100.0


#: What was not answered for so long may have met a frozen process, whose sockets stay open, or a network that swallows
#: all. Looking costs a controller that is only slow another request, so what may be repeated waits longer.
_LOOK_SECONDS: Final = 0.5
_LOOK_SECONDS_REPEATABLE: Final = 0.7
#: A controller that gives no sign of life for so long is silent: the others are asked who is active.
_SILENT_SECONDS: Final = 0.5
#: Between two questions to them, each of which waits a little longer than that at most.
_ASK_SECONDS: Final = 0.2
#: Far above what a loaded controller needs for it, for what is given up is of unknown outcome.
_ALIVE: Final = Request("GET", "/livez", timeout_ms=2_000)
_ALIVE_SOON: Final = replace(_ALIVE, timeout_ms=300)
#: Of one that was not heard yet: a loaded one is given more time than one that is known to be silent.
_ALIVE_FIRST: Final = replace(_ALIVE, timeout_ms=1_000)


class Unreachable(NotController):
    """No controller could be reached. Nothing has happened.

    ``is_nobody_there``: not one of them took a connection and is a controller.
    """

    def __init__(self, reasons: Sequence[str], *, is_nobody_there: bool = False) -> None:
        super().__init__(None, f"no controller could be reached: {'; '.join(reasons)}")
        self.is_nobody_there = is_nobody_there


class Sender(Protocol):
    """The way on which a client sends its requests."""

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """The answer. A request that is not repeatable is carried out once at most."""


class ConditionalSender:
    """``Sender``: each request is carried out only while the facts that it goes by are as they were.

    A client over it, ``ControllerClient((), sender=...)``, makes one change that was planned.

    Raises:
        ApiError: INVALID_UPDATE_VERSION, they are not; nothing was changed.
    """

    def __init__(self, sender: Sender, digest: str, request_id: str) -> None:
        """``digest``: of the facts (``digest_of_facts``). ``request_id``: what `quorate history` calls the request."""
        self._sender = sender
        self._headers = {headers.EXPECTED_FACTS: digest, headers.REQUEST_ID: request_id}

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """See ``Sender``."""
        return await self._sender.send(replace(request, headers=self._headers), is_repeatable=is_repeatable)


class _Failed(NamedTuple):
    """A round that nobody answered."""

    reason: ApiError
    #: Controllers that took no connection or broke it off, or are none.
    absent: int
    #: Whether none of them is a controller that this client may ask: waiting changes nothing.
    is_final: bool
    #: Whether there was time to ask any.
    has_asked: bool


class Attempts:
    """The controllers, and which of them served last. Owned by one client.

    ``absent_ms``: give up when for so long more than half of them took no connection, and the others served nothing:
    no majority is there that could elect one. Nothing has happened then. At once where the TLS of all of them is at
    fault: somebody waits who can do something about it. He makes one change, mostly, so that no controller is known to
    be frozen: each must have been heard before a change is sent to it. None: only when the time is up, and a change is
    sent to whoever is the first.
    """

    def __init__(self, connections: Sequence[Connection], absent_ms: float | None = None) -> None:
        self._connections = connections
        self._absent_s = math.inf if absent_ms is None else absent_ms / 1000
        #: Failures of a kind that waiting does not mend. Programs wait for files that are being exchanged.
        self._hopeless = NotAController if absent_ms is None else (NotAController, Untrusted)
        self._first = 0
        #: Controllers that did not answer the last thing they were asked. Connections to them may be dead.
        self._silent: set[int] = set()
        #: Controllers to which no change is sent before they have given a sign of life.
        self._unheard: set[int] = set() if absent_ms is None else set(range(len(connections)))
        #: Whether a change was sent that is not answered, nor given up.
        self.is_change_out = False
        #: The refusal of one that has too much to do, while the time that it named is waited for; None: none is.
        self.overload: Overloaded | None = None

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """Send a request until one controller answers.

        A request that is not repeatable goes on to another controller only where it certainly did nothing. One that is
        gives each controller its share of the time, so that a frozen one does not take all of it.

        One that has too much to do is left alone for as long as it says, and then the next one is asked.

        Raises:
            NotController: none was active in time (``Unreachable``: none was there).
            OutcomeUnknown: it was sent and not answered. ApiError: a controller's refusal.
            Overloaded: there would be room only when the time is up.
        """
        clock = asyncio.get_running_loop().time
        begun = clock()
        ends_at = begun + request.timeout_ms / 1000
        pause = _PAUSE_FIRST_SECONDS
        least = min(_SEND_MS_MIN, request.timeout_ms / 2) / 1000
        present_at = clock()
        refusals = 0
        known: _Failed | None = None
        while True:
            try:
                failed = await self._round(request, ends_at, is_repeatable=is_repeatable)
            except Overloaded as error:
                refusals += 1
                times = "once" if refusals == 1 else f"{refusals} times"
                await self._leave_alone(error, ends_at - least, f"asked {times} in {clock() - begun:.1f} s")
                present_at = clock()
                continue
            if isinstance(failed, Answer):
                return failed
            if known is not None and not failed.has_asked:
                raise known.reason  # the pause took all of the time that was left: nothing newer is known
            known = failed
            if failed.is_final:
                raise failed.reason
            if 2 * failed.absent <= len(self._connections):
                present_at = clock()
            if clock() + pause + least >= ends_at or clock() + pause - present_at >= self._absent_s:
                raise failed.reason
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    async def _leave_alone(self, refusal: Overloaded, ends_at: float, asked: str) -> None:
        """Wait for as long as a controller says that has too much to do. Nothing has happened there.

        Raises:
            Overloaded: there is not so much time.
        """
        wait_s = retry_after_ms(refusal) / 1000
        if asyncio.get_running_loop().time() + wait_s >= ends_at:
            message = f"{refusal.message} ({asked}; try again in {wait_s:.1f} s)"
            raise Overloaded(message, refusal.limit, wait_s * 1000) from refusal
        self.overload = refusal
        try:
            await asyncio.sleep(wait_s)
        finally:
            self.overload = None

    async def _round(self, request: Request, ends_at: float, *, is_repeatable: bool) -> Answer | _Failed:
        """The first answer, or why no controller gave one.

        Raises:
            ApiError: the first refusal; of what may be repeated, not that it took too long.
        """
        count = len(self._connections)
        refused: ApiError | None = None
        reasons: list[str] = []
        absent = broke_off = hopeless = asked = 0
        for step in range(count):
            left_ms = (ends_at - asyncio.get_running_loop().time()) * 1000
            if left_ms < min(_SEND_MS_MIN, request.timeout_ms / 2):
                break
            asked += 1
            index = (self._first + step) % count
            share_ms = left_ms / (count - step) if is_repeatable else left_ms
            try:
                answer = await self._answer(index, replace(request, timeout_ms=share_ms), is_repeatable=is_repeatable)
            except NotController as error:
                self._note_heard(index)
                refused = error
            except Overloaded:
                self._first = (index + 1) % count
                raise
            except ApiError as error:
                # As where the controller fell that it was passed on to.
                if not is_repeatable or error.code is not ErrorCode.REQUEST_TIMED_OUT:
                    raise
                self._note_heard(index)
                refused = error
            except NotSent as error:
                absent += 1
                hopeless += isinstance(error, self._hopeless)
                reasons.append(str(error))
            except NoAnswer as error:
                self._silent.add(index)
                if not is_repeatable:
                    # The next request does not begin with a controller that is silent.
                    self._first = (index + 1) % count
                    raise OutcomeUnknown(f"{error}: the change may have been made, read before repeating it") from error
                broke_off += isinstance(error, BrokeOff)
                reasons.append(str(error))
            else:
                self._note_heard(index)
                self._first = index
                return answer
        nobody = absent == count
        reason = refused or Unreachable(reasons or ["there was no time left to ask"], is_nobody_there=nobody)
        return _Failed(reason, absent + broke_off, is_final=hopeless == count, has_asked=asked > 0)

    async def _answer(self, index: int, request: Request, *, is_repeatable: bool) -> Answer:
        """One controller's answer. It is waited for only while that controller lives, or no other does.

        Raises:
            ApiError, NotSent, NoAnswer: as ``Connection.send``.
        """
        connection = self._connections[index]
        others = [other for other in self._connections if other is not connection]
        if is_repeatable:
            return await self._waited_for(connection, others, request, is_repeatable=True)
        await self._require_life(index)
        self.is_change_out = True
        try:
            answer = await self._waited_for(connection, others, request, is_repeatable=False)
        except Exception:  # not where whoever waits is told to end: then it stays out
            self.is_change_out = False
            raise
        self.is_change_out = False
        return answer

    async def _waited_for(
        self, connection: Connection, others: Sequence[Connection], request: Request, *, is_repeatable: bool
    ) -> Answer:
        if not others:
            return await connection.send(request)
        is_worth_it = partial(_is_worth_it, connection, others, is_repeatable=is_repeatable)
        look_s = _LOOK_SECONDS_REPEATABLE if is_repeatable else _LOOK_SECONDS
        answer = await answered_while(partial(connection.send, request), is_worth_it, look_s)
        if answer is None:
            raise NoAnswer(f"{connection.url} has stopped answering, and others do answer")
        return answer

    def _note_heard(self, index: int) -> None:
        self._silent.discard(index)
        self._unheard.discard(index)

    async def _require_life(self, index: int) -> None:
        """Look for a sign of life of a controller that may be frozen: what was sent to one may be done hours later.

        Raises:
            NotSent: it gives none, or cannot be reached.
        """
        is_silent = index in self._silent
        if not is_silent and index not in self._unheard:
            return
        try:
            await self._connections[index].send(_ALIVE_SOON if is_silent else _ALIVE_FIRST)
        except NoAnswer as error:
            self._silent.add(index)
            raise NotSent(f"{error}: nothing was sent to it") from error
        except ApiError:
            pass
        self._note_heard(index)


async def _is_worth_it(connection: Connection, others: Sequence[Connection], *, is_repeatable: bool) -> bool:
    """Whether to go on waiting for a controller.

    Not for one that is silent while others answer: at once where the request may be repeated, or where they say that
    another one is active now, for this one, if it was, would not know what became of the change.
    """
    async with asyncio.TaskGroup() as group:
        sign = group.create_task(_lives(connection, _ALIVE))
        await asyncio.wait({sign}, timeout=_SILENT_SECONDS)
        while not sign.done():
            heard = [state for state in await asyncio.gather(*map(_state_of, others)) if state is not None]
            is_replaced = connection.node_id is not None and any(
                state.active_id not in (None, connection.node_id) for state in heard
            )
            if not sign.done() and (is_replaced or (is_repeatable and heard)):
                sign.cancel()
                return False
            await asyncio.wait({sign}, timeout=_ASK_SECONDS)
    return sign.result() or not any(await asyncio.gather(*map(_lives, others)))


async def _lives(connection: Connection, question: Request = _ALIVE) -> bool:
    """Whether a controller's process does anything at all."""
    try:
        await connection.send(question)
    except ApiError:
        return True
    except (NotSent, NoAnswer):
        return False
    return True


async def _state_of(connection: Connection) -> NodeState | None:
    """A controller's account of itself, if it gives one soon."""
    try:
        return (await connection.send(_ALIVE_SOON)).node_state()
    except (ApiError, NotSent, NoAnswer):
        return None
