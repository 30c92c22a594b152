"""Index of a log's content, by offset, by epoch and by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.log_entries import BatchRef, EntryTable

__all__ = ["BatchRef", "EpochEnd", "LogIndex", "OffsetOutOfRange"]


class OffsetOutOfRange(StorageError):
    """An offset that this log does not hold (any more)."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is not within the log's {start_offset}..{end_offset - 1}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class EpochEnd(NamedTuple):
    """The end of an epoch in this log (exclusive)."""

    epoch: int
    end_offset: int


class LogIndex:
    """The lookups of ``MetadataLog``. Entries are numbered from 0 at ``start_offset``; every end is exclusive."""

    def __init__(self, entries: EntryTable, start_offset: int, start_epoch: int) -> None:
        self._entries = entries
        self._start_offset = start_offset
        self._start_epoch = start_epoch

    @property
    def start_offset(self) -> int:
        """The begin of the log: 0 with its whole history, else the end of the oldest usable checkpoint kept."""
        return self._start_offset

    @property
    def start_epoch(self) -> int:
        """Epoch of the batch before ``start_offset``; 0 when the log begins at 0."""
        return self._start_epoch

    @property
    def end_offset(self) -> int:
        """Exclusive end of the last batch, staged ones included."""
        return self._entries.end_offset

    @property
    def last_epoch(self) -> int:
        """Epoch of the last batch; ``start_epoch`` when there is none."""
        return self._entries.last_epoch_or(self._start_epoch)

    @property
    def entry_count(self) -> int:
        """Number of batches from ``start_offset`` on."""
        return len(self._entries)

    def entry(self, index: int) -> BatchRef:
        """The batch with this number.

        Raises:
            IndexError: not 0 <= index < ``entry_count``.
        """
        if not 0 <= index < len(self._entries):
            raise IndexError(f"entry {index} of {len(self._entries)}")
        return self._entries.ref(index)

    def epoch_of(self, index: int) -> int:
        """Epoch of the batch with this number; ``entry`` without the rest, for whoever walks many."""
        return self._entries.epoch_of(index)

    def epochs(self, first: int, stop: int) -> Sequence[int]:
        """Epochs of the batches numbered ``first <= index < stop``."""
        return self._entries.epochs(first, stop)

    def end_of(self, index: int) -> int:
        """Exclusive end offset of the batch with this number."""
        return self._entries.end_of(index)

    def end_of_run(self, first: int, stop: int, size_max: int) -> int:
        """Number behind the batches ``first <= index < stop`` that fit into ``size_max`` bytes : at least one."""
        return self._entries.end_of_run(first, stop, size_max)

    def largest(self) -> BatchRef | None:
        """The batch with the most bytes; None when there is none. Looks at every batch."""
        index = self._entries.largest()
        return None if index is None else self._entries.ref(index)

    def position_of_end(self, offset: int) -> int | None:
        """Index of the entry that ends at ``offset``; None when none does, as for ``start_offset``."""
        if not self._start_offset < offset <= self.end_offset:
            return None
        index = self._entries.starting_at(offset) - 1
        return index if index >= 0 and self._entries.end_of(index) == offset else None

    def position_containing(self, offset: int) -> int:
        """Index of the entry that holds the record ``offset``.

        Raises:
            OffsetOutOfRange: it is below ``start_offset`` or not below ``end_offset``.
        """
        if not self._start_offset <= offset < self.end_offset:
            raise OffsetOutOfRange(offset, self._start_offset, self.end_offset)
        return self._entries.containing(offset)

    def epoch_at(self, offset: int) -> int | None:
        """Epoch of the batch that ends at ``offset`` (the start has ``start_epoch``); None where no batch ends."""
        if offset == self._start_offset:
            return self._start_epoch
        index = self.position_of_end(offset)
        return None if index is None else self._entries.epoch_of(index)

    def holds(self, offset: int, epoch: int) -> bool:
        """Whether a batch of this epoch ends at ``offset``: then everything before it is the same as elsewhere."""
        return self.epoch_at(offset) == epoch

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The end of the highest epoch here that is not above ``epoch`` (Kafka's ``endOffsetForEpoch``).

        When ``epoch`` is older than the log's start, the start itself.
        """
        index = self._entries.first_of_epoch_above(epoch)
        if index == 0:
            return EpochEnd(self._start_epoch, self._start_offset)
        return EpochEnd(self._entries.epoch_of(index - 1), self._entries.end_of(index - 1))

    def start_of_epoch_at(self, index: int) -> int:
        """Index of the first entry with the same epoch as entry ``index``: where a conflicting epoch starts."""
        return self._entries.first_of_epoch_above(self._entries.epoch_of(index) - 1)
