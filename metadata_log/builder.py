"""Building data batches out of records and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from metadata_log.batch import HEADER_BYTES, build_batch, frame_record
from metadata_log.codec import encode_value
from metadata_log.columns import BatchItem, encode_run
from metadata_log.limits import BATCH_BYTES_MAX
from metadata_log.records import Record, VersionedRecord

#: Bytes a record's framing can add to its value: length, attributes, times, deltas, key, value length, headers.
FRAME_BYTES_MAX: Final = 5 + 1 + 1 + 5 + 1 + 5 + 1


class BatchBuilder:
    """Collects records in log order and makes one batch of them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.record_count = 0
        #: Bytes of the batch if it were built now.
        self.size = HEADER_BYTES

    def add(self, record: Record, version: int) -> None:
        """One more record; raises as ``encode_value`` does, and then adds nothing."""
        self._push(frame_record(self.record_count, None, encode_value(record, version)), 1)

    def add_item(self, item: BatchItem) -> None:
        """One more record, or one more run of them."""
        if isinstance(item, VersionedRecord):
            self.add(item.record, item.version)
        elif len(item):
            self._push(b"".join(encode_run(item, self.record_count)), len(item))

    def _push(self, piece: bytes, record_count: int) -> None:
        self._pieces.append(piece)
        self.record_count += record_count
        self.size += len(piece)

    def build(self, timestamp: int) -> bytes:
        """The batch, not yet placed; at least one record must have been added."""
        return build_batch(b"".join(self._pieces), self.record_count, timestamp)


def build_batches(items: Iterable[BatchItem], timestamp: int, bytes_max: int = BATCH_BYTES_MAX) -> Iterator[bytes]:
    """The items as as few batches as hold them, none over ``bytes_max`` unless one record alone is."""
    builder = BatchBuilder()
    for item in items:
        for part in _parts(item, bytes_max):
            piece = BatchBuilder()
            piece.record_count = builder.record_count  # offset deltas go on
            piece.add_item(part)
            grown = builder.size + piece.size - HEADER_BYTES
            if builder.record_count and grown > bytes_max:
                yield builder.build(timestamp)
                builder = BatchBuilder()
                builder.add_item(part)
            else:
                builder._push(b"".join(piece._pieces), piece.record_count - builder.record_count)
    if builder.record_count:
        yield builder.build(timestamp)


def _parts(item: BatchItem, bytes_max: int) -> Iterator[BatchItem]:
    """The item, or slices of a run that are each sure to fit."""
    if isinstance(item, VersionedRecord):
        yield item
        return
    row_bytes = FRAME_BYTES_MAX + sum(c.nbytes // max(len(c), 1) for _, c in item.columns()) + 64
    rows = max(1, (bytes_max - HEADER_BYTES) // row_bytes)
    for first in range(0, len(item), rows):
        yield item.slice(first, first + rows)
