"""The active controller's speculative state: what the log will say once everything appended has committed.

Each decision is encoded, decoded from those very bytes, and replayed onto the head before it joins a batch: a record
that replay cannot take fails its request and never reaches the log. Images are values, so leading off from a
wrong head is dropping a reference; nothing is ever undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from quorate.controller.engine.head_counters import COMMITS_FOLDED, HeadWatch
from quorate.metadata_log.batches.builder import BatchBuilder, encode_items
from quorate.metadata_log.batches.columns import decode_body
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import LimitExceeded, MalformedData
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState


@dataclass(frozen=True, slots=True)
class ClosedBatch:
    """A batch that is ready to be appended; the log places it at the head's offsets."""

    data: bytes
    record_count: int


class Head:
    """Owned by the controller's loop thread; made at the claim of an epoch, dropped when it ends.

    Invariant: ``state`` = the stable state + every appended batch + the open one, in order.
    """

    def __init__(self, stable: ReplayState, epoch: int, next_offset: int, watch: HeadWatch) -> None:
        self.state = stable
        self.epoch = epoch
        #: Offset of the next record, those of the open batch included.
        self.next_offset = next_offset
        self.uncommitted_bytes = 0
        self._open = BatchBuilder()
        self._timestamp = stable.head.provenance.log_time_ms
        #: (end offset, state, bytes, when its last event began) after each appended batch that has not committed yet.
        self._retained: deque[tuple[int, ReplayState, int, float]] = deque()
        self._watch = watch
        #: Whether a pass is under way: what it was decided on holds no more, and what it comes to does not hold yet.
        self.is_passing = False
        #: ``Decision.changed_broker`` of it.
        self.passing_broker: int | None = None
        watch.begun()

    @property
    def image(self) -> MetadataImage:
        """The image that decisions are made on."""
        return self.state.head

    @property
    def has_uncommitted(self) -> bool:
        """Whether anything that decisions can see may still be lost."""
        return bool(self._retained) or self._open.record_count > 0

    def settled(self, broker_id: int, stable: MetadataImage) -> MetadataImage | None:
        """The image that decisions are made on, where what it says of a broker is committed, whatever else is not.

        An image's parts are values: what nothing has changed since is the very object of the committed image,
        ``stable``. None where it is another, and while a pass is under way that may change it.
        """
        if self.is_passing and self.passing_broker in (None, broker_id):
            return None
        image = self.image
        is_settled = image is stable or image.cluster.brokers.get(broker_id) is stable.cluster.brokers.get(broker_id)
        return image if is_settled else None

    def fits(self, size: int) -> bool:
        """Whether a piece of this many bytes can join the open batch."""
        return self._open.size + size <= BATCH_BYTES_MAX

    def encode(self, items: Sequence[BatchItem]) -> bytes:
        """The items as they would join the open batch now.

        Raises:
            LimitExceeded: INVALID_REQUEST, something in them is longer than a record can hold.
        """
        try:
            return encode_items(items, self._open.record_count)
        except MalformedData as error:
            raise LimitExceeded(f"no record can hold it: {error}") from error

    def stage(self, piece: bytes, count: int, wall_ms: int) -> None:
        """Replay what ``encode`` gave, which holds so many records, and let it join the open batch.

        Raises:
            ReplayError, MalformedData: replay cannot take it; the head and the batch are as they were.
        """
        staged = self._open.record_count
        # One time for all of a batch, and it never runs backwards in the log.
        timestamp = self._timestamp if staged else max(wall_ms, self._timestamp)
        items = decode_body(piece, staged, count)
        before = self.state.head
        self.state = self.state.replay_items(items, self.next_offset, self.epoch, timestamp)
        self._timestamp = timestamp
        self.next_offset += count
        self._open.push(piece, count)
        self._watch.staged(before, items, self.next_offset)

    def close_batch(self) -> ClosedBatch | None:
        """End the open batch; None if nothing was staged. It counts as uncommitted from here on."""
        if self._open.record_count == 0:
            return None
        batch = ClosedBatch(self._open.build(self._timestamp), self._open.record_count)
        self._retained.append((self.next_offset, self.state, len(batch.data), self._watch.events.began_ms))
        self.uncommitted_bytes += len(batch.data)
        self._open = BatchBuilder()
        return batch

    def commit(self, high_watermark: int) -> ReplayState | None:
        """The state at the newest appended batch that ends at or below the high watermark; None if none is new."""
        newest, retained, watch = None, self._retained, self._watch
        if retained and retained[0][0] <= high_watermark:
            now_ms = watch.now_ms()
            while retained and retained[0][0] <= high_watermark:
                _, newest, size, began_ms = retained.popleft()
                self.uncommitted_bytes -= size
                watch.commits_ms.append(now_ms - began_ms)
            if len(watch.commits_ms) >= COMMITS_FOLDED:
                watch.fold()
            if watch.has_elected:
                watch.committed(high_watermark, now_ms)
        return newest
