"""The log's batches in memory: 20 bytes for each, plus the bytes of the recent ones within a budget."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from quorate.metadata_log.batches.batch import HEADER_BYTES
from quorate.metadata_log.batches.batch_run import BatchRun

#: What Python keeps for one batch in memory beside its bytes: the object around them and the place in the list.
_OBJECT_BYTES: Final = sys.getsizeof(b"") + 8
#: Empty places at the front of the list of batches in memory are closed when they are at least so many, and half of it.
_GONE_MIN: Final = 1024


class BatchRef(NamedTuple):
    """One batch of the log."""

    base_offset: int
    #: Exclusive.
    end_offset: int
    epoch: int
    #: Bytes, header included.
    size: int


class EntryTable:
    """Parallel arrays over the batches from the log's start to its end. Entries are numbered from 0 at the start."""

    def __init__(self, start_offset: int) -> None:
        self._bases = array("q")
        self._epochs = array("i")
        self._positions = array("I")
        self._sizes = array("I")
        #: Exclusive end of the last entry; the log's start when there is none.
        self.end_offset = start_offset
        # Every entry from _resident_from on has its bytes in the list, behind _gone empty places; none before it has.
        self._bytes: list[bytes] = []
        self._gone = 0
        self._resident_from = 0
        #: Memory of the batches whose bytes are here, with what Python keeps around them.
        self.resident_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    def add(self, end_offset: int, epoch: int, position: int, size: int) -> None:
        """Append an entry that lies on disk only. To be used before the first ``add_resident``."""
        self._resident_from += 1
        self._bases.append(self.end_offset)
        self._epochs.append(epoch)
        self._positions.append(position)
        self._sizes.append(size)
        self.end_offset = end_offset

    def add_resident(self, end_offset: int, epoch: int, position: int, data: bytes) -> None:
        """Append an entry with its bytes."""
        self._bytes.append(data)
        self.resident_bytes += len(data) + _OBJECT_BYTES
        self._bases.append(self.end_offset)
        self._epochs.append(epoch)
        self._positions.append(position)
        self._sizes.append(len(data))
        self.end_offset = end_offset

    def add_resident_run(self, position: int, run: BatchRun) -> None:
        """Append entries with their bytes, which lie back to back from ``position`` on."""
        bases = [self.end_offset, *run.ends[:-1]]
        sizes = list(map(len, run.batches))
        self._bytes.extend(run.batches)
        self.resident_bytes += run.size + _OBJECT_BYTES * len(bases)
        self._bases.extend(bases)
        self._epochs.extend(run.epochs)
        self._positions.extend(accumulate(sizes[:-1], initial=position))
        self._sizes.extend(sizes)
        self.end_offset = run.ends[-1]

    def last_epoch_or(self, start_epoch: int) -> int:
        """Epoch of the last entry; ``start_epoch`` when there is none."""
        epochs = self._epochs
        return epochs[-1] if epochs else start_epoch

    def epochs(self, first: int, stop: int) -> array[int]:
        """Epochs of the entries ``first <= index < stop``."""
        return self._epochs[first:stop]

    def end_of_run(self, first: int, stop: int, size_max: int) -> int:
        """Index behind the entries ``first <= index < stop`` that fit into ``size_max`` bytes: at least one."""
        if stop == first + 1:
            return stop
        sizes = self._sizes[first : min(stop, first + size_max // HEADER_BYTES + 1)]
        return first + max(1, bisect_right(list(accumulate(sizes)), size_max))

    def largest(self) -> int | None:
        """Number of the entry with the most bytes; None when there is none."""
        return max(range(len(self._sizes)), key=self._sizes.__getitem__, default=None)

    def resident_run(self, first: int, stop: int) -> bytes | None:
        """The bytes of the entries ``first <= index < stop``, back to back, when all are in memory."""
        if first < self._resident_from:
            return None
        ahead = self._gone - self._resident_from
        return b"".join(self._bytes[first + ahead : stop + ahead])

    def ref(self, index: int) -> BatchRef:
        return BatchRef(self._bases[index], self.end_of(index), self._epochs[index], self._sizes[index])

    def end_of(self, index: int) -> int:
        """Exclusive end offset of an entry."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else self.end_offset

    def base_of(self, index: int) -> int:
        return self._bases[index]

    def epoch_of(self, index: int) -> int:
        return self._epochs[index]

    def position_of(self, index: int) -> int:
        """Byte position in its segment."""
        return self._positions[index]

    def starting_at(self, offset: int) -> int:
        """Index of the first entry whose base offset is not below ``offset``; the count when there is none."""
        return bisect_left(self._bases, offset)

    def containing(self, offset: int) -> int:
        """Index of the entry with base <= offset < end. The caller has checked that there is one."""
        return bisect_right(self._bases, offset) - 1

    def every(self, stride: int, stop: int) -> Iterator[int]:
        """Entries below ``stop``, of one segment, that begin ``stride`` bytes or more behind the one given before.

        The first is ``stride`` bytes behind entry 0.
        """
        index = bisect_left(self._positions, self._positions[0] + stride, 0, stop) if stop else stop
        while index < stop:
            yield index
            index = bisect_left(self._positions, self._positions[index] + stride, index, stop)

    def first_of_epoch_above(self, epoch: int) -> int:
        """Index of the first entry with a higher epoch; the count when there is none. Epochs never fall."""
        return bisect_right(self._epochs, epoch)

    def resident(self, index: int) -> bytes | None:
        """Its bytes when they are in memory."""
        return self._bytes[self._gone + index - self._resident_from] if index >= self._resident_from else None

    def evict(self, budget: int, written_end: int) -> None:
        """Let the oldest bytes go until the budget holds; what ends above ``written_end`` is nowhere else and stays."""
        while self.resident_bytes > budget and self.end_of(self._resident_from) <= written_end:
            self._let_go(1)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        if count >= len(self._bases):
            return
        kept = self._gone + max(count - self._resident_from, 0)
        self.resident_bytes -= sum([len(data) + _OBJECT_BYTES for data in self._bytes[kept:]])
        del self._bytes[kept:]
        self.end_offset = self._bases[count]
        self._resident_from = min(self._resident_from, count)
        self._delete(slice(count, None))

    def drop_first(self, count: int) -> None:
        """Forget the first ``count`` entries; the others are numbered from 0 again."""
        self._let_go(max(count - self._resident_from, 0))
        self._resident_from -= count
        self._delete(slice(0, count))

    def _let_go(self, count: int) -> None:
        """Forget the bytes of the oldest ``count`` entries that are in memory."""
        for place in range(self._gone, self._gone + count):
            self.resident_bytes -= len(self._bytes[place]) + _OBJECT_BYTES
            self._bytes[place] = b""
        self._gone += count
        self._resident_from += count
        if self._gone >= max(_GONE_MIN, len(self._bytes) // 2):
            del self._bytes[: self._gone]
            self._gone = 0

    def _delete(self, part: slice) -> None:
        del self._bases[part]
        del self._epochs[part]
        del self._positions[part]
        del self._sizes[part]
