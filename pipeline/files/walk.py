"""Reading one range of a file: every check made, records as columns with their offsets.

What is checked: CRC of every batch, offsets dense from where the range begins to where it must end, epochs that never
fall, framing of every record, values of those that are decoded. A failure is ``CorruptBatch`` with file, position and
offset; everything yielded before it is good.

A ``LogChunk`` is some consecutive batches, so its offsets are dense: record ``i`` has offset ``first_offset + i``.
Records of one chunk are indexed together, however small the batches are, and mass records gathered by their shape::

    for chunk in read_range(one):
        for run, offsets in chunk.runs():      # PartitionRun | PartitionChangeRun, int64[n] ascending
            ...
        for offset, record, version in chunk.records():   # all others, ascending, control records too
            ...
        chunk.no_ops()                         # but for these: int64[n]
        chunk.batches.base_offsets, .epochs, .timestamps, .positions, .is_control    # one row a batch

Runs lie beside each other: records of one partition may be in several, and only offsets say in which order.
What is not asked for is not done: ``chunk.count`` costs a header a batch, ``chunk.types()`` the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.batch import HEADER_BYTES, HeaderFields, checked_fields, header_fields, iter_records
from quorate.metadata_log.batches.runs import Run
from quorate.metadata_log.errors import CorruptBatch, MalformedData, StorageError, UnsupportedRecord
from quorate.metadata_log.records.records import Record, SnapshotFooterRecord
from quorate.pipeline.files.archives import open_place, read_fully, skip
from quorate.pipeline.files.chunk_index import BadRow, ChunkIndex
from quorate.pipeline.files.ranges import Range

#: Bytes read at once: chunks are about as large. Of some 150,000 records, what a call costs is little for each.
CHUNK_BYTES: Final = 8 * 1024 * 1024

Offsets = npt.NDArray[np.int64]
T = TypeVar("T")


class PlacedRun(NamedTuple):
    """Mass records of one shape, and the offset of each."""

    run: Run
    #: int64[n], ascending.
    offsets: Offsets


class PlacedRecord(NamedTuple):
    """A record by itself."""

    offset: int
    record: Record
    version: int


@dataclass(frozen=True, slots=True)
class BatchTable:
    """The batches of a chunk; one row each."""

    base_offsets: Offsets
    #: int32
    epochs: npt.NDArray[np.int32]
    #: Milliseconds since 1970.
    timestamps: npt.NDArray[np.int64]
    #: In the file.
    positions: npt.NDArray[np.int64]
    #: uint32 in int64: of all behind a batch's CRC field, which its epoch is not.
    crcs: npt.NDArray[np.int64]
    is_control: npt.NDArray[np.bool_]
    record_counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """The records that are wanted. All are checked; those that are not wanted are not decoded."""

    first_offset: int = 0
    #: Exclusive; None = no end.
    end_offset: int | None = None
    #: Batches of these times, both inclusive, in milliseconds since 1970. Times may fall from batch to batch.
    first_time: int | None = None
    last_time: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no record at all is wanted."""
        return self.end_offset is not None and self.end_offset <= self.first_offset

    def has_time(self, timestamp: int) -> bool:
        """Whether a batch of this time is wanted."""
        return (self.first_time is None or timestamp >= self.first_time) and (
            self.last_time is None or timestamp <= self.last_time
        )


EVERYTHING: Final = RecordSelection()


class LogChunk:
    """Consecutive batches, checked. Never without a record that is wanted.

    Methods that look at records raise ``CorruptBatch`` where one is not the format, and ``StorageError`` where it is of
    a type or version that this program does not know.
    """

    def __init__(
        self,
        source: Range,
        data: bytes,
        position: int,
        starts: list[int],
        fields: list[HeaderFields],
        wanted: RecordSelection,
    ) -> None:
        """``starts``: of the batches in ``data``. ``position``: of ``data`` in the file."""
        self.range = source
        self._data = data
        self._position = position
        self._starts = starts
        self._fields = fields
        self._base = fields[0][0]
        end = fields[-1][0] + fields[-1][6]
        #: Of the records that are wanted, the second one exclusive.
        self.first_offset = max(self._base, wanted.first_offset)
        self.end_offset = end if wanted.end_offset is None else min(end, wanted.end_offset)

    @property
    def count(self) -> int:
        """Records that are wanted."""
        return self.end_offset - self.first_offset

    @cached_property
    def batches(self) -> BatchTable:
        """The batches that hold them, whole."""
        table = np.array(self._fields, np.int64)
        return BatchTable(
            base_offsets=table[:, 0],
            epochs=table[:, 2].astype(np.int32),
            timestamps=table[:, 5],
            positions=np.array(self._starts, np.int64) + self._position,
            crcs=table[:, 3],
            is_control=table[:, 4] != 0,
            record_counts=table[:, 6],
        )

    def offsets(self) -> Offsets:
        """The offset of every record."""
        return np.arange(self.first_offset, self.end_offset)

    def batch_rows(self) -> npt.NDArray[np.int64]:
        """For every record the row of its batch in ``batches``."""
        return np.repeat(np.arange(len(self._fields)), self.batches.record_counts)[self._rows]

    def types(self) -> npt.NDArray[np.uint8]:
        """The type id of every record; of control records, the control type."""
        return self._with(ChunkIndex.types)

    def versions(self) -> npt.NDArray[np.uint8]:
        """The version of every record."""
        return self._with(ChunkIndex.versions)

    def runs(self) -> list[PlacedRun]:
        """The mass records: PartitionRecords and PartitionChangeRecords."""
        return [PlacedRun(run, rows + self.first_offset) for run, rows in self._with(ChunkIndex.runs)]

    def no_ops(self) -> Offsets:
        """The offsets of NoOpRecords: an idle cluster writes hardly anything else."""
        return self._with(ChunkIndex.no_ops) + self.first_offset

    def records(self, types: frozenset[int] | None = None) -> list[PlacedRecord]:
        """All records that are neither in ``runs`` nor in ``no_ops``, ascending; also mass records no run can hold.

        Args:
            types: type ids that are wanted, None = all; control records have none.
        """
        found = self._with(lambda index: index.records(types))
        return [PlacedRecord(row + self.first_offset, record, version) for row, (record, version) in found]

    @property
    def _rows(self) -> slice:
        return slice(self.first_offset - self._base, self.end_offset - self._base)

    @cached_property
    def _index(self) -> ChunkIndex:
        return ChunkIndex(self._data, self._starts, self._fields, self._rows)

    def _with(self, look: Callable[[ChunkIndex], T]) -> T:
        try:
            return look(self._index)
        except BadRow as error:
            name, position = self.range.file.name, self._starts[error.batch] + self._position
            offset = self._fields[error.batch][0]
            if isinstance(error.__cause__, UnsupportedRecord):
                raise StorageError(
                    f"{name}: byte {position}, offset {offset}: {error}; "
                    "it was written by a later version than this program can read"
                ) from error
            raise CorruptBatch(name, position, offset, str(error)) from error


def read_range(
    one: Range, wanted: RecordSelection = EVERYTHING, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[LogChunk]:
    """The records of a range that are wanted, in order. Holds little more than one chunk.

    Raises:
        CorruptBatch: the first batch that fails a check, or a range that does not end as it must.
        StorageError: the file cannot be read.
    """
    if wanted.is_empty:
        return
    with open_place(one.file.place) as stream:
        skip(stream, one.first_byte, one.file.place)
        yield from _RangeReader(one, stream, wanted, chunk_bytes).chunks()


class _RangeReader:
    """Walks the batches of a range; ``_position``, ``_due`` and ``_epoch`` are what is due of the next one."""

    def __init__(self, one: Range, stream: BinaryIO, wanted: RecordSelection, chunk_bytes: int) -> None:
        self._range = one
        self._stream = stream
        self._wanted = wanted
        self._chunk_bytes = chunk_bytes
        self._read_end = one.first_byte
        self._is_all_read = False
        self._position = one.first_byte
        self._due = one.base_offset
        self._epoch = one.epoch_min
        self._last_batch = b""

    def chunks(self) -> Iterator[LogChunk]:
        data = b""
        size = self._chunk_bytes
        while True:
            data += self._more(size - len(data))
            start = self._position
            for starts, fields in self._batches(data):
                yield LogChunk(self._range, data, start, starts, fields, self._wanted)
            if self._is_past_wanted():
                return
            data = data[self._position - start :]
            if self._is_all_read:
                break
            size = max(self._chunk_bytes, _announced(data))
        self._require_end(data)

    def _more(self, size: int) -> bytes:
        end = self._range.end_byte
        asked = size if end is None else min(size, end - self._read_end)
        data = read_fully(self._stream, asked)
        self._read_end += len(data)
        self._is_all_read = len(data) < asked or self._read_end == end
        return data

    def _batches(self, data: bytes) -> Iterator[tuple[list[int], list[HeaderFields]]]:
        """Starts and headers of the batches in ``data``, checked; those that follow each other and are wanted.

        Ends where a batch is not whole.
        """
        starts: list[int] = []
        fields: list[HeaderFields] = []
        at, start = 0, self._position
        while at < len(data) and not self._is_past_wanted():
            try:
                one = self._good_batch(data, at)
            except CorruptBatch:
                if starts:
                    yield starts, fields
                raise
            if one is None:
                break
            base, size, self._epoch, _, _, timestamp, count = one
            self._due = base + count
            if self._due > self._wanted.first_offset and self._wanted.has_time(timestamp):
                starts.append(at)
                fields.append(one)
            elif starts:
                yield starts, fields
                starts, fields = [], []
            if self._range.file.is_checkpoint:
                self._last_batch = data[at : at + size]
            at += size
            self._position = start + at
        if starts:
            yield starts, fields

    def _good_batch(self, data: bytes, at: int) -> HeaderFields | None:
        """The next batch, None where it goes on behind ``data``."""
        try:
            one = checked_fields(data, at)
        except MalformedData as error:
            if len(data) - at < _announced(data[at : at + HEADER_BYTES]):
                return None
            raise self._damage(str(error)) from error
        base, _, epoch, _, _, _, count = one
        bounds = self._range
        if base != self._due:
            raise self._damage(f"base offset {base} where {self._due} is due")
        if epoch < self._epoch:
            raise self._damage(f"epoch {epoch} after epoch {self._epoch}")
        if bounds.epoch_max is not None and epoch > bounds.epoch_max:
            raise self._damage(f"epoch {epoch}, while what follows it has epoch {bounds.epoch_max}")
        if bounds.end_offset is not None and base + count > bounds.end_offset:
            reason = f"it goes on to offset {base + count}, but {_following(bounds)} begins at {bounds.end_offset}"
            raise self._damage(f"{reason}: the two overlap; keep one of them")
        return one

    def _is_past_wanted(self) -> bool:
        return self._wanted.end_offset is not None and self._due >= self._wanted.end_offset

    def _require_end(self, left: bytes) -> None:
        """See to it that the range ends as it must, with ``left`` behind its last whole batch."""
        bounds = self._range
        if left and (bounds.torn_from is None or self._due < bounds.torn_from):
            announced = _announced(left)
            raise self._damage(f"the batch is cut short: at least {announced} bytes announced, {len(left)} there")
        if bounds.end_offset is not None and self._due != bounds.end_offset:
            reason = f"it ends at offset {self._due}, but {_following(bounds)} begins at {bounds.end_offset}"
            raise self._damage(f"{reason}: restore what is missing in between")
        if bounds.file.is_checkpoint and bounds.end_offset is None and not _is_footer(self._last_batch):
            raise self._damage("the checkpoint does not end with a SnapshotFooter: copy it again, or use an older one")

    def _damage(self, reason: str) -> CorruptBatch:
        return CorruptBatch(self._range.file.name, self._position, self._due, reason)


def _announced(data: bytes) -> int:
    """Bytes of the batch that begins here, as far as it says; more than there are, or the rest is malformed."""
    if len(data) < HEADER_BYTES:
        return HEADER_BYTES
    try:
        return header_fields(data, 0)[1]
    except MalformedData:
        return 0


def _following(bounds: Range) -> str:
    return bounds.next_file or "what follows it"


def _is_footer(batch: bytes) -> bool:
    if not batch:
        return False
    return header_fields(batch, 0)[4] != 0 and isinstance(list(iter_records(batch))[-1].record, SnapshotFooterRecord)
