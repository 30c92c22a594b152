"""The borders of ``QuorumController``: the agreement below it, the role above it, and what travels between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from controller.decision import Decision
from snapshots.image import MetadataImage
from snapshots.replay_state import ReplayState

T = TypeVar("T")


class Quorum(Protocol):
    """What the controller needs of the agreement below it (``quorum.node.QuorumNode``)."""

    @property
    def leader_id(self) -> int | None:
        """Who leads, as far as this node knows."""

    @property
    def log_end_offset(self) -> int:
        """Exclusive end of this node's log."""

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        """Append one batch as leader of ``epoch``; its last offset. Raises where this node does not lead there."""

    def resign(self, epoch: int) -> None:
        """Stop leading ``epoch``."""

    def read_barrier(self) -> Awaitable[int]:
        """An offset that everything acknowledged before this call lies below."""


class CommittedBatches(Protocol):
    """Committed batches in log order, to be read while they are handed over (``quorum.host.CommittedBatches``)."""

    @property
    def end_offset(self) -> int:
        """Exclusive."""

    def __iter__(self) -> Iterator[bytes]:
        """Each batch as it lies in the log."""


class Role(Protocol):
    """What the controller does because it is active; implemented by ``controller.active_role``."""

    def activation(self, state: ReplayState) -> Decision[None]:
        """The records that an epoch begins with."""

    def activated(self) -> None:
        """The activation records are on their way: start timers and soft state."""

    def renounced(self) -> None:
        """Not active any more: drop soft state."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What an operation may look at. Times: monotonic for intervals, wall for record contents."""

    image: MetadataImage
    next_offset: int
    now_ms: float
    wall_ms: int


@dataclass(frozen=True, slots=True)
class ControllerLimits:
    """Bounds on what waits; over one of them a request is refused before anything is decided."""

    queue_length_max: int = 10_000
    uncommitted_bytes_max: int = 64 * 1024 * 1024


#: Called with a decision and the exclusive end offset of its records, once they are part of the head.
Applied = Callable[[Decision[T], int], None]


def no_soft_state(decision: Decision[Any], end_offset: int) -> None:
    """Most operations have no soft state."""


class Reply(Generic[T]):
    """Where an event's answer goes, exactly once."""

    def __init__(self, complete: Callable[[T], None], fail: Callable[[Exception], None]) -> None:
        self.complete = complete
        self.fail = fail

    @classmethod
    def to_future(cls, future: asyncio.Future[T]) -> Reply[T]:
        """Into a future, unless whoever waited for it has gone."""

        def complete(result: T) -> None:
            if not future.done():
                future.set_result(result)

        def fail(error: Exception) -> None:
            if not future.done():
                future.set_exception(error)

        return cls(complete, fail)
