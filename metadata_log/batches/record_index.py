"""The positions of the records in batch bodies, found for all records of one or many batches at once.

Real logs have batches of one record and batches of ten thousand. A record says where the next one begins, so that much
is walked: by strides where many of one size follow each other, else one by one. All else that the framing says is
compared with what is due by columns, so what a batch costs by itself is little. A record that does not look exactly as
Kafka and we frame a data record is only marked: whoever reads it one by one (``batch.read_frame``) says what is wrong
with it, if anything is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec import FRAME_VERSION

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: In ``RecordIndex.types``: not framed as usual. No record type has this id.
UNUSUAL: Final = 255

#: Value sizes below these have a length varint of one and two bytes; longer values are left as unusual.
_ONE_BYTE_SIZE: Final = 1 << 6
_TWO_BYTE_SIZE: Final = 1 << 13
#: Frame version, type and version: no value is shorter.
_HEAD_BYTES: Final = 3
#: Length, attributes, timestamp delta, offset delta, key size, value size and header count: no record is shorter.
_RECORD_BYTES_MIN: Final = 7
#: Records of one size in a row from which on a stride pays, and after how many others another look is worth its while.
_STRIDE_MIN: Final = 24
_FIRST_PAUSE: Final = 32
_LONGEST_PAUSE: Final = 1024
#: Records that a stride looks at first: what a call costs, not what it looks at.
_FIRST_LOOK: Final = 1024


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


class WrongLength(MalformedData):
    """A record does not have the length that it says; ``number`` counts the records of the walk from 0."""

    def __init__(self, number: int, delta: int) -> None:
        super().__init__(f"record {delta} of the batch does not have the length it says")
        self.number = number


class RecordWalk:
    """Finds where the records of batches end, one batch after the other: the next one begins there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._array = np.frombuffer(data, np.uint8)
        #: Of each batch: where its first record begins, that one's offset delta, and how many there are.
        self._batches: list[tuple[int, int, int]] = []
        self._ends: list[int] = []
        self._pieces: list[Positions] = []

    def batch(self, pos: int, end: int, count: int, first_delta: int = 0) -> None:
        """Walk the records from ``pos`` to ``end``, which must be ``count``. A single one ends with its batch.

        Args:
            first_delta: the offset delta that is due for the first record.

        Raises:
            MalformedData: they do not fill it.
        """
        if count * _RECORD_BYTES_MIN > end - pos:
            raise MalformedData(f"{count} records in {end - pos} bytes")
        try:
            last = self._to_last(pos, end, count)
        except wire.DECODE_ERRORS as error:
            raise MalformedData(f"record framing is cut short: {error}") from error
        if last > end or (last < end and not count):
            raise MalformedData(f"{count} records do not fill their batch: the last one ends {last - end} bytes off")
        self._batches.append((pos, first_delta, count))

    def index(self) -> RecordIndex:
        """All records so far.

        Raises:
            WrongLength: of the first that has another length than it says.
        """
        self._flush()
        ends = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
        starts, first_deltas, counts = np.array(self._batches, np.int64).reshape(-1, 3).T
        first_rows = np.cumsum(counts) - counts
        deltas = np.arange(len(ends)) + np.repeat(first_deltas - first_rows, counts)
        begins = np.empty_like(ends)
        begins[1:] = ends[:-1]
        begins[first_rows[counts > 0]] = starts[counts > 0]
        bodies, is_filled = _bodies(self._data, self._array, begins, ends)
        if not is_filled.all():
            wrong = int(np.argmin(is_filled))
            raise WrongLength(wrong, int(deltas[wrong]))
        key_starts, due = _deltas_due(self._array, bodies + 2, deltas)
        plain = due & (_at(self._array, bodies) == 0) & (_at(self._array, bodies + 1) == 0)
        plain &= (_at(self._array, ends - 1) == 0) & (_at(self._array, key_starts) == 1)  # no header, a null key
        value_starts, value_sizes, has_size = _values(self._array, key_starts + 1, ends - 1)
        plain &= has_size & (_at(self._array, value_starts) == FRAME_VERSION)
        types = np.where(plain, _at(self._array, value_starts + 1), np.uint8(UNUSUAL))
        return RecordIndex(begins, ends, value_starts, value_sizes, types)

    def _to_last(self, pos: int, end: int, count: int) -> int:
        """Over all records but the last; where that one begins."""
        left, pause = count, _FIRST_PAUSE
        while left >= _STRIDE_MIN:
            found, pos = self._stride(pos, end, left)
            left -= found
            if not found:
                pos = self._step(pos, min(left, pause) - 1)
                left -= min(left, pause) - 1
                pause = min(2 * pause, _LONGEST_PAUSE)
        if left:
            pos = self._step(pos, left - 1)
            self._ends.append(end)
        return pos

    def _step(self, pos: int, count: int) -> int:
        """Over so many records one by one; where the next one begins. Whether it may be is for ``_bodies`` to say."""
        buf, append = self._data, self._ends.append
        for _ in range(count):
            length = buf[pos]
            if length < 128:
                pos += 1 + (length >> 1)
            elif (second := buf[pos + 1]) < 128:
                pos += 2 + ((length + (second << 7) - 128) >> 1)
            else:
                length, pos = wire.read_uvarint(buf, pos)
                pos += length >> 1
            append(pos)
        return pos

    def _stride(self, pos: int, end: int, left: int) -> tuple[int, int]:
        """Take all records of one size that follow, if they are many; how many they were, and where the next begins."""
        data = self._data
        first, second = data[pos], data[pos + 1]
        width = 1 if first < 128 else 2
        if width == 2 and second > 127:
            return 0, pos
        size = width + ((first if width == 1 else first + (second << 7) - 128) >> 1)
        most = min(left, (end - pos) // size)
        # Most looks fail at once, and an array is slow to ask for one byte.
        if most < _STRIDE_MIN or data[pos + size] != first or data[pos + 2 * size] != first:
            return 0, pos
        count, look = 0, _FIRST_LOOK
        # Where a record of this size begins, and the next one's length is the same, one more begins behind it.
        while count < most:
            some = min(count + look, most)
            same = self._array[pos + count * size : pos + some * size : size] == first
            if width == 2:
                same &= self._array[pos + count * size + 1 : pos + some * size : size] == second
            different = same.argmin()
            if not same[different]:
                count += int(different)
                break
            count = some
            look *= 8
        if count < _STRIDE_MIN:
            return 0, pos
        self._flush()
        self._pieces.append(np.arange(pos + size, pos + count * size + 1, size))
        return count, pos + count * size

    def _flush(self) -> None:
        if self._ends or not self._pieces:
            self._pieces.append(np.array(self._ends, np.int64))
            self._ends = []


def _bodies(data: bytes, array: ByteColumn, begins: Positions, ends: Positions) -> tuple[Positions, Mask]:
    """The positions at which records go on behind their lengths, and whether these say where they end."""
    first = array.take(begins, mode="clip").astype(np.int64)
    second = array.take(begins + 1, mode="clip").astype(np.int64)
    is_long = first > 127
    bodies = begins + 1 + is_long
    lengths = np.where(is_long, first + (second << 7) - 128, first)
    for row in np.flatnonzero(is_long & (second > 127)).tolist():
        try:
            lengths[row], bodies[row] = wire.read_uvarint(data, int(begins[row]))
        except (MalformedData, *wire.DECODE_ERRORS):
            lengths[row] = -1
    # An odd length is negative: it is zigzag.
    return bodies, (bodies + (lengths >> 1) == ends) & (lengths & 1 == 0)


def _deltas_due(array: ByteColumn, at: Positions, deltas: Positions) -> tuple[Positions, Mask]:
    """The ends of the varints at these positions if they are the numbers that are due, and whether they are."""
    due = np.ones(len(at), np.bool_)
    ends = at + 1
    zigzag = deltas << 1
    more = zigzag >= 128
    rows: Positions | slice = slice(None)
    byte = 0
    while True:
        # The bytes at one place of all varints that are as long, and longer.
        last = ~more[rows]
        expected = (zigzag[rows] >> (7 * byte)) & 127 | np.where(last, 0, 128)
        due[rows] &= array.take(at[rows] + byte, mode="clip") == expected
        if last.all():
            return ends, due
        byte += 1
        rows = np.flatnonzero(zigzag >= 1 << (7 * byte))
        ends[rows] += 1
        more = zigzag >= 1 << (7 * (byte + 1))


def _values(
    array: ByteColumn, starts: Positions, ends: Positions
) -> tuple[Positions, Positions, npt.NDArray[np.bool_]]:
    """The positions and sizes of values, where a length varint at ``starts`` says that the value ends at ``ends``."""
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
