"""Writes checkpoints of a node's state: their timing and content (Kafka's ``SnapshotGenerator``).

After so many bytes of log, after a time if anything was written, or when somebody asks; one at a time; never inside a
metadata transaction. The image is a value: the file is made from it on another thread while the controller goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

from quorate.controller.background.checkpoint_pace import WorkPace
from quorate.controller.engine.event_queue import Scheduler
from quorate.controller.engine.purgatory import Reply
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded, StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.json_form import json_type
from quorate.metadata_log.records.records import PartitionRecord, TopicRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.snapshots.checkpoints.as_records import after_topics, before_topics
from quorate.snapshots.checkpoints.checkpoint import checkpoint_chunks
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import ImageDigest
from quorate.snapshots.table.record_versions import NEWEST_LEVEL


class StableState(Protocol):
    """``controller.engine.quorum_controller.QuorumController``."""

    @property
    def stable(self) -> MetadataImage:
        """The newest committed image outside any open transaction."""

    @property
    def applied_offset(self) -> int:
        """Exclusive end of what was applied."""


#: ``quorum.node.QuorumNode.write_checkpoint``.
Write = Callable[[int, CheckpointContent, Callable[[StorageError | None], None]], None]


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """The bounds at which a checkpoint is due."""

    #: Bytes of log since the last one.
    log_bytes: int
    #: Time since the last one, if anything was written; 0 = never by time.
    interval_ms: float


class CannotTake(ApiError):
    """No checkpoint can be taken of the state as it is now; of a later one it can."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(ErrorCode.OPERATION_NOT_ATTEMPTED, message, {"reason": reason})


@dataclass(frozen=True, slots=True)
class TakenCheckpoint:
    """The answer to a wish for a checkpoint: a durable one covers everything that was applied when it was asked for."""

    #: Exclusive end of what it covers.
    end_offset: int
    #: Whether it was written for that; else the newest one there covered everything already.
    is_written: bool


#: Of ``CannotTake``.
NOTHING_APPLIED: Final = "nothing-applied"
OPEN_TRANSACTION: Final = "open-transaction"

#: Between two attempts when a checkpoint cannot be written, as on a full disk: doubled from the first to the last.
_REST_MIN_MS: Final = 10_000.0
_REST_MAX_MS: Final = 600_000.0

#: Called when one has been written, or could not be: its end offset, how long it took (ms), what went wrong.
Report = Callable[[int, float, StorageError | None], None]


class CheckpointWriter:
    """Owned by the loop thread. ``moved`` must be called whenever the committed state has moved."""

    def __init__(
        self,
        state: StableState,
        metadata_log: MetadataLog,
        covered: Callable[[], int],
        write: Write,
        report: Report,
        limits: CheckpointLimits,
        scheduler: Scheduler,
        pace: WorkPace,
        digests: DigestMemory,
    ) -> None:
        """``covered``: gives the (exclusive) end of what the newest checkpoint there covers; 0 if there is none."""
        self._state = state
        self._log = metadata_log
        self._covered = covered
        self._write = write
        self._report = report
        self._limits = limits
        self._scheduler = scheduler
        self._pace = pace
        #: End offset of the checkpoint that is being written; None while none is.
        self.writing_offset: int | None = None
        #: Who waits for it.
        self._waiting: Reply[TakenCheckpoint] | None = None
        #: What ends at or before it is counted in ``_bytes``, or covered by a checkpoint.
        self._counted_offset = covered()
        self._bytes = 0
        self._last_ms = scheduler.monotonic_ms()
        self._digests = digests
        #: After one that failed none is begun by itself before this time, and the pause after the next such one.
        self._rests_until_ms = 0.0
        self._rest_ms = _REST_MIN_MS
        #: Whether one is due whatever was written since the last.
        self._is_wanted = False

    def renew(self) -> None:
        """The newest checkpoint is of no use any more: write another as soon as it can be."""
        self._is_wanted = True
        self.moved()

    def moved(self) -> None:
        """Write a checkpoint if one is due."""
        self._count()
        if self.writing_offset is None and self._is_due() and self._is_at_an_end():
            self._begin()

    def take(self, reply: Reply[TakenCheckpoint]) -> None:
        """Write a checkpoint now; ``reply`` is told once everything applied before this call is in a durable one.

        It fails with a StorageError where what was written is no checkpoint.

        Raises:
            CannotTake: nothing has been applied yet, or a transaction is open. Overloaded: one is being written.
        """
        applied = self._state.applied_offset
        if applied <= 0:
            raise CannotTake("this controller has applied nothing yet: there is no state to keep", NOTHING_APPLIED)
        if self.writing_offset is not None:
            writing = f"a checkpoint of the state at offset {self.writing_offset} is being written"
            raise Overloaded(f"{writing}: one at a time is taken", "checkpoints")
        covered = self._covered()
        if covered >= applied:
            reply.complete(TakenCheckpoint(covered, is_written=False))
            return
        if not self._is_at_an_end():
            begin = self._state.stable.provenance.end_offset
            raise CannotTake(
                f"the transaction that began at offset {begin} is open: a checkpoint can be taken when it has ended",
                OPEN_TRANSACTION,
            )
        self._count()
        self._waiting = reply
        self._begin()

    def _count(self) -> None:
        """Add the bytes of the batches applied since the last count."""
        log = self._log
        self._counted_offset = max(self._counted_offset, log.start_offset)
        end = self._state.applied_offset
        if end <= self._counted_offset or end > log.end_offset:
            return
        index = log.position_containing(self._counted_offset)
        while index < log.entry_count and log.entry(index).end_offset <= end:
            self._bytes += log.entry(index).size
            index += 1
        self._counted_offset = end

    def _is_due(self) -> bool:
        if self._scheduler.monotonic_ms() < self._rests_until_ms:
            return False
        if self._is_wanted or self._bytes >= self._limits.log_bytes:
            return True
        has_time_passed = self._scheduler.monotonic_ms() - self._last_ms >= self._limits.interval_ms > 0
        return has_time_passed and self._bytes > 0

    def _is_at_an_end(self) -> bool:
        """Whether the state covers whole batches, and all that were applied: it does not inside a transaction."""
        end_offset = self._state.stable.provenance.end_offset
        return (
            end_offset == self._state.applied_offset > self._log.start_offset
            and self._log.epoch_at(end_offset) is not None
        )

    def _begin(self) -> None:
        image = self._state.stable
        end_offset = image.provenance.end_offset
        self.writing_offset = end_offset
        self._bytes = 0
        self._is_wanted = False
        self._last_ms = self._scheduler.monotonic_ms()

        def done(error: StorageError | None) -> None:
            self.writing_offset = None
            self._note_end(error)
            self._report(end_offset, self._scheduler.monotonic_ms() - self._last_ms, error)
            waiting, self._waiting = self._waiting, None
            if waiting is None:
                return
            if error is None:
                waiting.complete(TakenCheckpoint(end_offset, is_written=True))
            else:
                waiting.fail(error)

        self._write(end_offset, self._content(image), done)

    def _note_end(self, error: StorageError | None) -> None:
        if error is None:
            self._rest_ms = _REST_MIN_MS
            return
        self._is_wanted = True
        self._rests_until_ms = self._scheduler.monotonic_ms() + self._rest_ms
        self._rest_ms = min(2 * self._rest_ms, _REST_MAX_MS)

    def _content(self, image: MetadataImage) -> CheckpointContent:
        timestamp, pace = self._scheduler.wall_ms(), self._pace
        made: list[CheckpointManifest] = []

        # All on the writing thread.
        def chunks() -> Iterator[bytes]:
            with pace.working():
                yield from checkpoint_chunks(image, timestamp, pace.pause)
                made.append(manifest_of(self._digests.digest(image, pace.pause)))

        return CheckpointContent(chunks(), lambda: made[-1], pace.pause)


def manifest_of(digest: ImageDigest) -> CheckpointManifest:
    """The manifest of a checkpoint of the image: data records by type, and the state's digest."""
    image = digest.image
    level = image.features.metadata_version or NEWEST_LEVEL
    counts = Counter(json_type(item.record) for item in chain(before_topics(image, level), after_topics(image)))
    counts[SCHEMA_OF_CLASS[TopicRecord].json_type] = len(image.topics)
    counts[SCHEMA_OF_CLASS[PartitionRecord].json_type] = len(image.partitions)
    return CheckpointManifest(dict(+counts), digest.value)
