"""The positions of the records in a batch body, found for all of them at once.

A record says where the next one begins, so that much must be walked; it takes a few steps a record. All else that the
framing says is compared with what is due by columns. A record that does not look exactly as Kafka and we frame a data
record is only marked: whoever reads it one by one (``batch.read_frame``) says what is wrong with it, if anything is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.run_codec import delta_widths, varints
from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.records.codec import FRAME_VERSION
from quorate.metadata_log.records.wire import Buffer

Positions = npt.NDArray[np.int64]

#: In ``RecordIndex.types``: not framed as usual. No record type has this id.
UNUSUAL: Final = 255

#: Value sizes below these have a length varint of one and two bytes; longer values are left as unusual.
_ONE_BYTE_SIZE: Final = 1 << 6
_TWO_BYTE_SIZE: Final = 1 << 13
#: Frame version, type and version: no value is shorter.
_HEAD_BYTES: Final = 3


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Some records of a batch body, in order; positions are in the buffer. One row per record."""

    starts: Positions
    #: Exclusive.
    ends: Positions
    #: Meaningless where the record is unusual, like the next one.
    value_starts: Positions
    value_sizes: Positions
    #: uint8[n]: type ids, or ``UNUSUAL``.
    types: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.types)


def index_records(buf: Buffer, pos: int, end: int, first_delta: int) -> RecordIndex:
    """Index the records from ``pos`` on: up to ``end``, or the first one whose length cannot be right.

    Args:
        first_delta: the offset delta that is due for the first record.
    """
    bodies, ends_list = _walk(buf, pos, end)
    array = np.frombuffer(buf, np.uint8)
    body, ends = np.array(bodies, np.int64), np.array(ends_list, np.int64)
    starts = np.array([pos, *ends_list[:-1]], np.int64)[: len(bodies)]
    due = np.ones(len(body), np.bool_)
    key_starts = np.empty_like(body)
    for first, last, width in delta_widths(first_delta, len(body)):
        at = body[first:last] + 2
        due[first:last] = _have(array, at, varints(first_delta + first, last - first, width))
        key_starts[first:last] = at + width
    return index_at(array, starts, body, ends, key_starts, due)


def index_at(
    array: ByteColumn,
    starts: Positions,
    bodies: Positions,
    ends: Positions,
    key_starts: Positions,
    due: npt.NDArray[np.bool_],
) -> RecordIndex:
    """The index of records that may lie in several batches, from where their parts are.

    Args:
        bodies: where each record goes on behind its length. key_starts: where it goes on behind its offset delta.
        due: whether the offset delta between these is the one that is due.
    """
    plain = due & (_at(array, bodies) == 0) & (_at(array, bodies + 1) == 0) & (_at(array, ends - 1) == 0)
    plain &= _at(array, key_starts) == 1  # null
    value_starts, value_sizes, has_size = _values(array, key_starts + 1, ends - 1)
    plain &= has_size & (_at(array, value_starts) == FRAME_VERSION)
    types = np.where(plain, _at(array, value_starts + 1), np.uint8(UNUSUAL))
    return RecordIndex(starts, ends, value_starts, value_sizes, types)


def _walk(buf: Buffer, pos: int, end: int) -> tuple[list[int], list[int]]:
    """Where each record goes on behind its length, and where it ends."""
    bodies: list[int] = []
    ends: list[int] = []
    last = end - 1
    # The last byte of a batch cannot begin a record, so both bytes of a length are always there.
    while pos < last:
        length = buf[pos]
        pos += 1
        if length > 127:
            second = buf[pos]
            if second > 127:
                break
            length += (second << 7) - 128
            pos += 1
        body = pos
        pos += length >> 1
        if length & 1 or pos > end:
            break
        bodies.append(body)
        ends.append(pos)
    return bodies, ends


def _values(
    array: ByteColumn, starts: Positions, ends: Positions
) -> tuple[Positions, Positions, npt.NDArray[np.bool_]]:
    """Where values begin and their sizes, where a length varint at ``starts`` says that the value ends at ``ends``."""
    space = ends - starts
    widths = np.where(space - 1 < _ONE_BYTE_SIZE, 1, 2)
    sizes = space - widths
    first, second = _at(array, starts), _at(array, starts + 1)
    zigzag = sizes << 1
    is_one_byte = (widths == 1) & (first == zigzag)
    is_two_bytes = (widths == 2) & (first == (zigzag & 127 | 128)) & (second == zigzag >> 7)
    is_possible = (sizes >= _HEAD_BYTES) & (sizes < _TWO_BYTE_SIZE)
    return starts + widths, sizes, (is_one_byte | is_two_bytes) & is_possible


def _at(array: ByteColumn, positions: Positions) -> ByteColumn:
    """The bytes at these positions; those behind the end are some byte or other, of records that are too short."""
    return array.take(positions, mode="clip")


def _have(array: ByteColumn, starts: Positions, expected: ByteColumn) -> npt.NDArray[np.bool_]:
    good = np.ones(len(starts), np.bool_)
    for byte in range(expected.shape[1]):
        good &= _at(array, starts + byte) == expected[:, byte]
    return good
