"""The log's first batches, for whoever reads the past: what lies before its start and in a file all the same.

A checkpoint moves the log's start, and only whole segments are removed: what the first one holds before the start is
read by nobody who follows the log, and tells its history. It does so only from offset 0 on: where the first segment
begins later, there is no state that its batches could follow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from quorate.metadata_log.batches.batch import BatchHeader, checked_header
from quorate.metadata_log.errors import CorruptBatch, MalformedData
from quorate.metadata_log.log.log_entries import EntryTable
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.metadata_log.segments.segment_reader import SegmentReader

#: Bytes of the file between two places that are remembered: what is read too much by whoever asks for one batch.
_STRIDE: Final = 64 * 1024


class _Mark(NamedTuple):
    """A place where a batch begins."""

    offset: int
    position: int


class EarlierBatches(NamedTuple):
    """Whole batches, one behind the other."""

    data: bytes
    base_offset: int
    #: Exclusive.
    end_offset: int
    #: Of the last one.
    epoch: int


class Beginning:
    """Batches from offset 0 to the log's start, in segment 0. Not thread-safe: the loop thread's, as the log is."""

    def __init__(self, reader: SegmentReader) -> None:
        self._reader = reader
        # The last mark is where the part ends.
        self._marks = [_Mark(0, 0)]
        #: (epoch, offset that it begins at) of each epoch.
        self._epochs: list[tuple[int, int]] = []

    @property
    def end_offset(self) -> int:
        """Exclusive: the log's start."""
        return self._marks[-1].offset

    def take(self, entries: EntryTable, count: int) -> None:
        """Take over the first ``count`` entries of a log, which lie durable in segment 0 behind what is here."""
        position = entries.position_of(count - 1) + entries.ref(count - 1).size
        end = _Mark(entries.end_of(count - 1), position)
        marks = self._marks
        for index in entries.every(_STRIDE, count):
            marks.append(_Mark(entries.base_of(index), entries.position_of(index)))
        marks.append(end)
        index = 0
        while index < count:
            epoch = entries.epoch_of(index)
            if not self._epochs or self._epochs[-1][0] != epoch:
                self._epochs.append((epoch, entries.base_of(index)))
            index = entries.first_of_epoch_above(epoch)

    def read_from(self, offset: int, size_max: int) -> EarlierBatches:
        """Batches from the one that holds ``offset`` on, 0 <= offset < end: at least one, within ``size_max`` bytes.

        Raises:
            CorruptBatch: what is on disk is not what was written. OSError: the disk failed.
        """
        headers: list[BatchHeader] = []
        taken: list[bytes] = []
        size = 0
        for header, data in self._batches(offset):
            size += header.size
            if taken and size > size_max:
                break
            headers.append(header)
            taken.append(data)
        return EarlierBatches(b"".join(taken), headers[0].base_offset, headers[-1].end_offset, headers[-1].epoch)

    def epoch_at(self, offset: int) -> int | None:
        """Epoch of the batch that ends at ``offset``, 0 < offset <= end; None where none does. Raises as above."""
        holding = self.read_from(offset - 1, 1)
        return holding.epoch if holding.end_offset == offset else None

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """(epoch, exclusive end) of the highest epoch not above ``epoch``; None where it may end behind this part."""
        index = bisect_right(self._epochs, epoch, key=lambda begin: begin[0])
        if index == len(self._epochs):
            return None
        return (self._epochs[index - 1][0] if index else 0, self._epochs[index][1])

    def _batches(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """From the one that holds ``offset`` on."""
        first = bisect_right(self._marks, offset, key=lambda mark: mark.offset) - 1
        for begin, end in pairwise(self._marks[first:]):
            data = self._reader.read(0, begin.position, end.position - begin.position)
            due, at = begin.offset, 0
            while due < end.offset:
                header = self._checked(data, at, begin.position, due)
                if header.end_offset > offset:
                    yield header, data[at : at + header.size]
                due, at = header.end_offset, at + header.size

    def _checked(self, data: bytes, at: int, position: int, due: int) -> BatchHeader:
        try:
            header = checked_header(memoryview(data), at)
        except MalformedData as error:
            raise CorruptBatch(segment_name(0), position + at, due, str(error)) from error
        if header.base_offset != due:
            reason = f"base offset {header.base_offset} where {due} is due"
            raise CorruptBatch(segment_name(0), position + at, due, reason)
        return header
