"""The borders of ``QuorumController``: the agreement below it, the role above it, and what travels between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.origin import ORIGIN, Origin
from quorate.controller.decisions.precondition import PRECONDITION
from quorate.controller.engine.marks import COMMITTED, DECIDED, MARKS, TURN, Marks
from quorate.controller.engine.purgatory import Reply, T_contra
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

T = TypeVar("T")

#: What keeps an idle log moving: twice a second, and nothing changes by it.
NO_OP: Final = "no_op"
#: Events by whose answers brokers live, and which cost little.
_URGENT: Final = frozenset({"broker_heartbeat", "controlled_shutdown"})


class Quorum(Protocol):
    """The agreement below the controller, as far as it needs it (``quorum.node.QuorumNode``)."""

    @property
    def leader_id(self) -> int | None:
        """The leader, as far as this node knows."""

    @property
    def log_end_offset(self) -> int:
        """Exclusive end of this node's log."""

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        """Append one batch as leader of ``epoch``; its last offset. Raises where this node does not lead there."""

    def resign(self, epoch: int) -> None:
        """Stop leading ``epoch``."""

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        """Call ``done`` once a majority has confirmed, in a round that began after this call, that this node leads.

        It gets an offset that everything acknowledged before this call lies below; or why this node leads no more,
        before the controller is told of that. Raises where this node does not lead.
        """


class BatchReader(Protocol):
    """Committed batches in log order, to be read while they are handed over (``quorum.host.BatchReader``)."""

    @property
    def end_offset(self) -> int:
        """Exclusive."""

    def __iter__(self) -> Iterator[bytes]:
        """Each batch as it lies in the log."""


class Role(Protocol):
    """The duties of the active controller; implemented by ``controller.operations.active_role``."""

    def activation(self, state: ReplayState) -> Decision[None]:
        """The records that an epoch begins with."""

    def activated(self) -> None:
        """The activation records are on their way: start timers and soft state."""

    def renounced(self) -> None:
        """Not active any more: drop soft state."""


class WriteContext(NamedTuple):
    """The state that an operation may look at."""

    image: MetadataImage
    next_offset: int
    #: Monotonic.
    now_ms: float
    #: Who asked; None where the controller acts by itself.
    origin: Origin | None


class DecidedWrite(NamedTuple):
    """A change that was decided; whether it commits is not known yet."""

    name: str
    origin: Origin | None
    #: What it wrote; of a pass over many partitions its first slice. The end is exclusive.
    base_offset: int
    end_offset: int
    #: Why it was refused.
    error: ApiError | None

    @property
    def has_changed(self) -> bool:
        """Whether it wrote anything but what keeps an idle log moving."""
        return self.end_offset > self.base_offset and self.error is None and self.name != NO_OP


#: Called with a decision and the exclusive end offset of its records, once they are part of the head.
Applied = Callable[[Decision[T], int], None]


class WriteReply(Reply[T_contra], Protocol[T_contra]):
    """The receiver of a write event's answer."""

    def found(self) -> None:
        """Nothing was written, and the answer waits until that is confirmed: whoever gives it up knows that much."""


@dataclass(frozen=True, slots=True)
class WriteRequest(Generic[T]):
    """The content of a write event."""

    name: str
    operation: Callable[[WriteContext], Decision[T]]
    reply: WriteReply[T]
    #: None: it has no soft state.
    applied: Applied[T] | None = None
    #: Who asked; None: nobody that is known, or the controller itself.
    origin: Origin | None = None
    #: Somebody waits for the reply.
    is_external: bool = False
    #: None: nobody traces the request.
    marks: Marks | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether it comes before what is not."""
        return self.is_external and self.name in _URGENT


def asked_for(
    name: str, operation: Callable[[WriteContext], Decision[T]], reply: WriteReply[T], applied: Applied[T] | None
) -> WriteRequest[T]:
    """The write event that the running task asks for: by its ``ORIGIN``, and under its ``PRECONDITION``.

    The condition is looked at where the change is decided, so between the two nothing can happen.
    """
    precondition, marks = PRECONDITION.get(), MARKS.get()

    def decide(context: WriteContext) -> Decision[T]:
        if marks is not None:
            marks.note(TURN)
        if precondition is not None:
            precondition(context.image)
        decision = operation(context)
        if marks is not None:
            marks.note(DECIDED)
        return decision

    return WriteRequest(name, decide, reply, applied, ORIGIN.get(), is_external=True, marks=marks)


@dataclass(frozen=True, slots=True)
class ControllerLimits:
    """Bounds on what waits; over one of them a request is refused before anything is decided."""

    #: Of requests that wait for their turn, again of answers, and of reads, that wait until leadership is confirmed.
    queue_length_max: int
    uncommitted_bytes_max: int


class FutureReply(Generic[T]):
    """``WriteReply`` into a future, unless whoever waited for it has gone."""

    __slots__ = ("_future", "_marks", "is_finding")

    def __init__(self, future: asyncio.Future[T]) -> None:
        self._future = future
        self._marks = MARKS.get()
        #: Whether it waits among the ``Findings``: what was not confirmed in time has changed nothing.
        self.is_finding = False

    def complete(self, result: T) -> None:
        if self._marks is not None:
            self._marks.note(COMMITTED)
        if not self._future.done():
            self._future.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)

    def found(self) -> None:
        self.is_finding = True

    async def outcome(self, name: str, timeout_ms: float | None) -> T:
        """The outcome of the change ``name``.

        Raises:
            OutcomeUnknown: it did not commit in time. ApiError: it wrote nothing, which was not confirmed in time; and
                whatever the change was refused with.
        """
        if timeout_ms is None:
            return await self._future
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                # Awaited itself, so that it ends with whoever waits: an answer that nobody takes is no error.
                return await self._future
        except TimeoutError as error:
            if self.is_finding:
                message = f"{name} changed nothing, and nobody confirmed within {timeout_ms:.0f} ms that it need not"
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{message}: try again") from error
            message = f"{name} did not commit within {timeout_ms:.0f} ms"
            raise OutcomeUnknown(f"{message}: read before repeating it") from error


def into(future: asyncio.Future[T]) -> Callable[[T | Exception], None]:
    """Gives an outcome to a future, unless whoever waited for it has gone."""

    def settle(outcome: T | Exception) -> None:
        if future.done():
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    return settle


class UnheardReply:
    """``WriteReply`` of an event that nobody waits for."""

    __slots__ = ("_on_failure",)

    def __init__(self, on_failure: Callable[[Exception], None] = lambda _: None) -> None:
        self._on_failure = on_failure

    def complete(self, result: object) -> None:
        """Nobody waits for it."""

    def fail(self, error: Exception) -> None:
        self._on_failure(error)

    def found(self) -> None:
        """Nobody waits for it."""
