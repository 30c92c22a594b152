"""A history as publishers meet it: the state after each batch, and that state as it comes when it is loaded whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState


@dataclass(frozen=True)
class HistoryPoint:
    """The state after a batch. It shares with that of the point before what did not change."""

    image: MetadataImage
    #: Bytes of the batch.
    byte_count: int

    @property
    def offset(self) -> int:
        """Last offset that the state contains."""
        return self.image.provenance.last_contained_offset

    @cached_property
    def reloaded(self) -> MetadataImage:
        """The same state read from a checkpoint: it shares nothing with any other, and its rows are other rows."""
        covers = self.image.provenance
        return read_checkpoint(checkpoint_batches(self.image, covers.log_time_ms), covers.end_offset, covers.epoch)


def points_of(batches: Iterable[bytes], start: ReplayState | None = None) -> list[HistoryPoint]:
    """The points at which a publisher may be told: after each batch that ends outside of a transaction.

    ``start``: the state before the first batch; None: the empty one.
    """
    return list(_points(batches, start or ReplayState()))


def points_in(directory: Path) -> list[HistoryPoint]:
    """The points of the log in a metadata directory, ours or Kafka's.

    Raises:
        StorageError: nothing there, or damage. ReplayError: a record cannot be replayed.
        ImageNotAvailable: the log begins in the middle of history.
    """
    start, batches = batches_from_start(directory)
    return points_of((bytes(batch.data) for batch in batches), start)


def _points(batches: Iterable[bytes], state: ReplayState) -> Iterator[HistoryPoint]:
    for batch in batches:
        before, state = state, state.replay_batch(batch)
        if state.stable is not before.stable:
            yield HistoryPoint(state.stable, len(batch))
