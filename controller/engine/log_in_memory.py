"""A log that commits whatever is appended, for controllers that run without a quorum: rehearsals and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from quorate.controller.engine.event_queue import Scheduler
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.metadata_log.batches.batch import parse_header, place_batch
from quorate.metadata_log.errors import NotController


class _Committed:
    """One batch, as a stretch of committed ones."""

    def __init__(self, batch: bytes) -> None:
        self._batch = batch
        self.end_offset = parse_header(batch).end_offset

    def __iter__(self) -> Iterator[bytes]:
        return iter((self._batch,))


class LogInMemory:
    """``engine.interfaces.Quorum``: what is appended is committed in the next turn of the loop, on every controller."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.leader_id: int | None = None
        #: All of the log, as placed.
        self.batches: list[bytes] = []
        self.controllers: Sequence[QuorumController] = ()

    @property
    def log_end_offset(self) -> int:
        """Exclusive end of the log."""
        return parse_header(self.batches[-1]).end_offset if self.batches else 0

    def write(self, epoch: int, payload: bytes) -> None:
        """Append one batch on nobody's behalf: what the log begins with."""
        batch = place_batch(payload, self.log_end_offset, epoch)
        self.batches.append(batch)
        for controller in self.controllers:
            self._scheduler.call_soon(partial(controller.on_commit, _Committed(batch)))

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        """As leader; its last offset.

        Raises:
            NotController: this node does not lead.
        """
        if self.leader_id is None:
            raise NotController(None)
        self.write(epoch, payload)
        return self.log_end_offset - 1

    def resign(self, epoch: int) -> None:
        """Nobody leads from now on."""
        self.leader_id = None

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        """The end of the log, in the next turn of the loop: nobody else leads."""
        self._scheduler.call_soon(partial(done, self.log_end_offset))
