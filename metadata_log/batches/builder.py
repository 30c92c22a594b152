"""Building data batches out of records and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from quorate.metadata_log.batches.batch import HEADER_BYTES, batch_head, frame_record, join_batch
from quorate.metadata_log.batches.run_codec import encode_run
from quorate.metadata_log.batches.runs import BatchItem, Run
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import Record, VersionedRecord
from quorate.metadata_log.records.wire import Buffer

#: A run of so few rows is written record by record: its columns cost more than they save.
_ROWS_BY_RECORD: Final = 2
#: Bytes a record's framing can add to its value: length, attributes, times, deltas, key, value length, headers.
FRAME_BYTES_MAX: Final = 5 + 1 + 1 + 5 + 1 + 5 + 1
#: Pieces up to this size are copied one behind the other, up to so many bytes: a batch of single records would else be
#: a hundred thousand pieces, and the cycle collector would look at each.
_SMALL_BYTES: Final = 1_024
_GATHERED_BYTES: Final = 65_536


def item_count(item: BatchItem) -> int:
    """The number of records that an item stands for."""
    return 1 if isinstance(item, VersionedRecord) else len(item)


def counted(items: Iterable[BatchItem]) -> tuple[list[BatchItem], int]:
    """The items that stand for any records, and how many these are."""
    present = []
    count = 0
    for item in items:
        size = item_count(item)
        if size:
            present.append(item)
            count += size
    return present, count


def encode_items(items: Sequence[BatchItem], first_delta: int) -> bytes:
    """The items as a piece of a batch body, with offset deltas from ``first_delta`` on.

    Raises:
        UnsupportedRecord, MalformedData: a record cannot be written in its version.
    """
    pieces: list[Buffer] = []
    for item in items:
        pieces.append(_encode_item(item, first_delta))
        first_delta += item_count(item)
    return b"".join(pieces)


def _encode_item(item: BatchItem, first_delta: int) -> Buffer:
    if isinstance(item, VersionedRecord):
        return frame_record(first_delta, None, encode_value(item.record, item.version))
    if len(item) <= _ROWS_BY_RECORD:
        records = [item.record(row) for row in range(len(item))]
        return b"".join(
            frame_record(first_delta + row, None, encode_value(record, item.version))
            for row, record in enumerate(records)
        )
    return encode_run(item, first_delta)


class BatchBuilder:
    """Collects records in log order and makes one batch of them."""

    def __init__(self) -> None:
        self._pieces: list[Buffer] = []
        #: The last piece, if small ones may still join it.
        self._gathered: bytearray | None = None
        self.record_count = 0
        #: Bytes of the batch if it were built now.
        self.size = HEADER_BYTES

    def add(self, record: Record, version: int) -> None:
        """One more record; raises as ``encode_items`` does, and then adds nothing."""
        self.add_item(VersionedRecord(record, version))

    def add_item(self, item: BatchItem) -> None:
        """One more record, or one more run of them; raises as ``encode_items`` does."""
        self.push(_encode_item(item, self.record_count), item_count(item))

    def push(self, piece: Buffer, record_count: int) -> None:
        """A piece that ``encode_items`` made for exactly this place."""
        if len(piece) > _SMALL_BYTES:
            self._gathered = None
            self._pieces.append(piece)
        elif self._gathered is None or len(self._gathered) > _GATHERED_BYTES:
            self._gathered = bytearray(piece)
            self._pieces.append(self._gathered)
        else:
            self._gathered += piece
        self.record_count += record_count
        self.size += len(piece)

    def build(self, timestamp: int) -> bytes:
        """The batch, not yet placed; at least one record must have been added."""
        return join_batch(self._pieces, self.record_count, timestamp)

    def placed_pieces(self, timestamp: int, base_offset: int, epoch: int) -> list[Buffer]:
        """The batch at its place in the log, in pieces: for who writes it to a file and need not have it in one."""
        pieces = self._pieces
        return [batch_head(pieces, self.record_count, timestamp, base_offset=base_offset, epoch=epoch), *pieces]


def build_batches(items: Iterable[BatchItem], timestamp: int, bytes_max: int = BATCH_BYTES_MAX) -> Iterator[bytes]:
    """The items as few batches, none over ``bytes_max`` unless one record alone is."""
    return (builder.build(timestamp) for builder in filled_builders(items, bytes_max))


def filled_builders(items: Iterable[BatchItem], bytes_max: int = BATCH_BYTES_MAX) -> Iterator[BatchBuilder]:
    """The builders of few batches; as ``build_batches``."""
    builder = BatchBuilder()
    for part in split_items(items, bytes_max):
        piece = _encode_item(part, builder.record_count)
        if builder.record_count and builder.size + len(piece) > bytes_max:
            yield builder
            builder = BatchBuilder()
            piece = _encode_item(part, 0)
        builder.push(piece, item_count(part))
    if builder.record_count:
        yield builder


def split_items(items: Iterable[BatchItem], bytes_max: int, rows_max: int | None = None) -> Iterator[BatchItem]:
    """The items, with runs cut into slices that are each sure to fit a batch of ``bytes_max`` (and ``rows_max``)."""
    for item in items:
        if isinstance(item, VersionedRecord):
            yield item
            continue
        rows = max(1, (bytes_max - HEADER_BYTES) // _row_bytes_max(item))
        rows = min(rows, rows_max or rows)
        for first in range(0, len(item), rows):
            yield item.slice(first, first + rows)


def size_max(item: BatchItem) -> int:
    """A bound on the bytes that an item takes in a batch; exact for a single record but for its framing."""
    if isinstance(item, VersionedRecord):
        return FRAME_BYTES_MAX + len(encode_value(item.record, item.version))
    return len(item) * _row_bytes_max(item)


def _row_bytes_max(run: Run) -> int:
    columns = sum(column.nbytes // max(1, len(column)) + 4 for _, column in run.columns())
    return FRAME_BYTES_MAX + 8 + columns  # 4: tag, size and length of an array; 8: frame, tag count
