"""Finds the point where a file goes on after damage: the next batch that is whole, at whatever distance."""

from __future__ import annotations

from typing import BinaryIO, Final, NamedTuple

from quorate.metadata_log.batches.batch import HEADER_BYTES, checked_fields, header_fields
from quorate.metadata_log.errors import MalformedData
from quorate.pipeline.files.archives import open_place, read_fully, skip
from quorate.pipeline.files.ranges import Range

#: Producer id, producer epoch and base sequence are -1 in every metadata batch: where a header may be.
_SIGNATURE: Final = b"\xff" * 14
_SIGNATURE_AT: Final = 43
_READ_BYTES: Final = 4 * 1024 * 1024


class NextBatch(NamedTuple):
    """A batch behind damage."""

    position: int
    offset: int
    epoch: int


def next_batch(one: Range, position: int, offset: int) -> NextBatch | None:
    """The first whole batch of the range behind ``position`` of a higher offset than ``offset``, None at its end."""
    with open_place(one.file.place) as stream:
        skip(stream, position + 1, one.file.place)
        return _BatchSearch(one, stream, position + 1).find(offset + 1)


class _BatchSearch:
    def __init__(self, one: Range, stream: BinaryIO, position: int) -> None:
        self._range = one
        self._stream = stream
        self._position = position
        self._data = b""

    def find(self, least: int) -> NextBatch | None:
        at = 0
        while True:
            found = self._data.find(_SIGNATURE, at + _SIGNATURE_AT)
            if found < 0:
                # A header may have begun in what was searched.
                kept = max(0, len(self._data) - HEADER_BYTES)
                self._data, self._position = self._data[kept:], self._position + kept
                at = 0
                if not self._more(_READ_BYTES):
                    return None
                continue
            at = found - _SIGNATURE_AT
            batch = self._batch_at(at, least)
            if batch is not None:
                return batch
            at += 1

    def _batch_at(self, at: int, least: int) -> NextBatch | None:
        try:
            size = header_fields(self._data, at)[1]
            while at + size > len(self._data) and self._more(at + size - len(self._data)):
                pass
            base, _, epoch, _, _, _, count = checked_fields(self._data, at)
        except MalformedData:
            return None
        end = self._range.end_offset
        is_within = base >= least and (end is None or base + count <= end)
        return NextBatch(self._position + at, base, epoch) if is_within else None

    def _more(self, size: int) -> bool:
        end = self._range.end_byte
        if end is not None:
            size = min(size, end - self._position - len(self._data))
        data = read_fully(self._stream, size) if size > 0 else b""
        self._data += data
        return bool(data)
