"""A log that commits when a test says so, and the controllers that listen to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import ControllerLimits, WriteContext
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.metadata_log.batches.batch import parse_header, place_batch
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController
from quorate.metadata_log.records.records import FeatureLevelRecord, TopicRecord, VersionedRecord
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_limits
from tests.guards.sound_images import watch
from tests.unit.controller.manual_scheduler import ManualScheduler


class Committed:
    """A stretch of committed batches."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self._batches = batches
        self.end_offset = parse_header(batches[-1]).end_offset

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._batches)


class ManualQuorum:
    """One log of placed batches, one leader at most; ``controller.engine.interfaces.Quorum``."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.leader_id: int | None = None
        self.leader_epoch = 0
        self.committed = 0
        self.fail_next_append: Exception | None = None
        #: Whether the others answer: nobody confirms the leadership of a node that is cut off.
        self.is_followed = True
        self.barriers: list[Callable[[int | NotController], None]] = []

    @property
    def log_end_offset(self) -> int:
        return parse_header(self.batches[-1]).end_offset if self.batches else 0

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        if self.fail_next_append is not None:
            error, self.fail_next_append = self.fail_next_append, None
            raise error
        if self.leader_id is None or epoch != self.leader_epoch:
            raise NotController(self.leader_id)
        self.batches.append(place_batch(payload, self.log_end_offset, epoch))
        return self.log_end_offset - 1

    def resign(self, epoch: int) -> None:
        if epoch == self.leader_epoch:
            self.leader_id = None

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        if self.leader_id is None:
            raise NotController(None)
        self.barriers.append(done)
        if self.is_followed:
            self.confirm()

    def confirm(self) -> None:
        """A majority answers."""
        barriers, self.barriers = self.barriers, []
        for done in barriers:
            done(self.committed)

    def take_committed(self, count: int) -> Committed:
        """The next ``count`` batches, committed now."""
        taken = [b for b in self.batches if parse_header(b).base_offset >= self.committed][:count]
        self.committed = parse_header(taken[-1]).end_offset
        return Committed(taken)

    def drop_uncommitted(self) -> None:
        """What a new leader may do to the tail."""
        self.batches = [b for b in self.batches if parse_header(b).end_offset <= self.committed]


class RecordingFaults:
    """Faults become facts that a test can look at; a fatal one ends the test."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Exception]] = []

    def fault(self, what: str, error: Exception) -> None:
        self.seen.append((what, error))

    def fatal(self, what: str, error: Exception) -> None:
        raise AssertionError(f"fatal fault in {what}") from error


class PlainRole:
    """An active controller that begins its epoch with a metadata version and does nothing by itself."""

    def __init__(self) -> None:
        self.story: list[str] = []

    def activation(self, state: ReplayState) -> Decision[None]:
        if state.stable.features.metadata_version:
            return Decision((), None)
        return Decision([VersionedRecord(FeatureLevelRecord("metadata.version", 30), 0)], None)

    def activated(self) -> None:
        self.story.append("activated")

    def renounced(self) -> None:
        self.story.append("renounced")


class Bench:
    """One controller on a manual log, clock and role."""

    def __init__(self, limits: ControllerLimits | None = None) -> None:
        self.scheduler = ManualScheduler()
        self.quorum = ManualQuorum()
        self.role = PlainRole()
        self.faults = RecordingFaults()
        self.controller = QuorumController(
            1, self.quorum, self.role, self.scheduler, self.faults, limits or controller_limits()
        )
        watch(lambda: self.controller.stable)

    def lead(self) -> None:
        """The controller becomes active in the next epoch."""
        self.quorum.leader_id = 1
        self.quorum.leader_epoch += 1
        self.controller.on_leader_change(1, self.quorum.leader_epoch)
        self.scheduler.run()

    def lose(self) -> None:
        """Somebody else leads, and the uncommitted tail is gone."""
        self.quorum.leader_id = 2
        self.quorum.leader_epoch += 1
        barriers, self.quorum.barriers = self.quorum.barriers, []
        for done in barriers:
            done(NotController(2))
        self.controller.on_leader_change(2, self.quorum.leader_epoch)
        self.quorum.drop_uncommitted()
        self.scheduler.run()

    def commit(self, count: int = 1_000_000) -> None:
        """Everything appended so far, or the next ``count`` batches."""
        if self.quorum.log_end_offset > self.quorum.committed:
            self.controller.on_commit(self.quorum.take_committed(count))
        self.scheduler.run()

    async def settle(self) -> None:
        """Let tasks run up to their next wait, and the controller with them."""
        for _ in range(5):
            await asyncio.sleep(0)
            self.scheduler.run()


def topic(number: int) -> VersionedRecord:
    """A topic's record; its id follows from the number."""
    return VersionedRecord(TopicRecord(f"topic-{number}", number.to_bytes(16, "big")), 0)


def writes(*records: VersionedRecord, reply: object = "done") -> Callable[[object], Decision[object]]:
    """An operation that writes these records whatever it sees."""
    return lambda _: Decision(list(records), reply)


async def started(bench: Bench, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The task, run up to where it waits for its commit."""
    task = asyncio.create_task(coroutine)
    await bench.settle()
    return task


def refuse(_: WriteContext) -> Decision[None]:
    raise ApiError(ErrorCode.INVALID_REQUEST, "no")
