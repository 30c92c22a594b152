"""The positions and kinds of the records of consecutive batches: found for all batches of a buffer together.

Real logs have batches of one record and batches of ten thousand. A record says where the next one begins, so that much
is walked: by strides where many of one size follow each other, else one by one. All else is done by columns over the
whole buffer, so what a batch costs by itself is little.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.batch import CONTROL_ATTRIBUTE, HEADER_BYTES, HeaderFields, iter_records, read_frame
from quorate.metadata_log.batches.gathering import gather_numbered_runs
from quorate.metadata_log.batches.record_index import UNUSUAL, Positions, RecordIndex, index_at
from quorate.metadata_log.batches.run_layout import RUN_CLASSES
from quorate.metadata_log.batches.runs import Run
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec import FRAME_VERSION, decode_value_at
from quorate.metadata_log.records.records import VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS

#: Records of one size in a row from which on a stride pays, and after how many others another look is worth its while.
_STRIDE_MIN: Final = 24
_FIRST_PAUSE: Final = 32
_LONGEST_PAUSE: Final = 1024
#: Records that a stride looks at first: what a call costs, not what it looks at.
_FIRST_LOOK: Final = 1024

NO_OP_TYPE: Final = 20
#: Frame version, type, version 0, no tagged field: every NoOpRecord there is.
_NO_OP_VALUE: Final = bytes((FRAME_VERSION, NO_OP_TYPE, 0, 0))

Mask = npt.NDArray[np.bool_]


class ChunkIndex:
    """The records of the batches that start at ``starts`` in ``data``; a row each, those outside of ``rows`` left out.

    Methods raise ``BadRow`` where a record is not the format; the constructor where the records of a batch do not fill
    it.
    """

    def __init__(self, data: bytes, starts: Sequence[int], fields: Sequence[HeaderFields], rows: slice) -> None:
        self._data = data
        self._array = np.frombuffer(data, np.uint8)
        walk = _Walk(data, self._array)
        #: By row: what is read one by one, whatever its type.
        self._read: dict[int, VersionedRecord] = {}
        for number, (start, (_, size, _, _, attributes, _, count)) in enumerate(zip(starts, fields, strict=True)):
            try:
                if attributes & CONTROL_ATTRIBUTE:
                    for row, logged in enumerate(iter_records(data, start), walk.count):
                        self._read[row - rows.start] = VersionedRecord(logged.record, logged.version)
                walk.batch(start + HEADER_BYTES, start + size, count)
            except MalformedData as error:
                raise BadRow(number, error) from error
            except wire.DECODE_ERRORS as error:
                raise BadRow(number, MalformedData(f"record framing is cut short: {error}")) from error
        counts = np.array([one[6] for one in fields], np.int64)
        self._first_rows = np.cumsum(counts) - counts
        self._first_row = rows.start
        ends = walk.ends()
        deltas = np.arange(len(ends)) - np.repeat(self._first_rows, counts)
        begins = np.empty_like(ends)
        begins[1:] = ends[:-1]
        begins[self._first_rows] = np.array(starts, np.int64) + HEADER_BYTES
        bodies, is_filled = _bodies(data, self._array, begins, ends)
        if not is_filled.all():
            wrong = int(np.argmin(is_filled))
            batch = int(np.searchsorted(self._first_rows, wrong, "right")) - 1
            raise BadRow(batch, MalformedData(f"record {deltas[wrong]} of the batch does not have the length it says"))
        key_starts, due = _deltas_due(self._array, bodies + 2, deltas)
        whole = index_at(self._array, begins, bodies, ends, key_starts, due)
        self._deltas = deltas[rows]
        self._index = RecordIndex(
            whole.starts[rows], whole.ends[rows], whole.value_starts[rows], whole.value_sizes[rows], whole.types[rows]
        )
        self._read = {row: record for row, record in self._read.items() if 0 <= row < len(self._index)}
        self._index.types[list(self._read)] = UNUSUAL

    def types(self) -> npt.NDArray[np.uint8]:
        """Type ids; of control records the control type."""
        types = self._index.types.copy()
        for row in self._unusual_rows:
            types[row] = SCHEMA_OF_CLASS[type(self._one(row).record)].type_id
        return types

    def versions(self) -> npt.NDArray[np.uint8]:
        """Record versions."""
        versions: npt.NDArray[np.uint8] = self._array.take(self._index.value_starts + 2, mode="clip")
        for row in self._unusual_rows:
            versions[row] = self._one(row).version
        return versions

    def runs(self) -> list[tuple[Run, Positions]]:
        """Mass records by shape, each run with the rows it stands for, ascending."""
        return self._gathered[0]

    def no_ops(self) -> Positions:
        """The rows that are NoOpRecords."""
        return np.flatnonzero(self._is_no_op)

    def records(self, types: frozenset[int] | None = None) -> list[tuple[int, VersionedRecord]]:
        """All rows that are in no run and no NoOpRecord, ascending.

        Args:
            types: type ids that are wanted, None = all. Control records are of none of them.
        """
        wanted = ~self._is_mass & ~self._is_no_op
        if types is not None:
            table = np.zeros(256, np.bool_)
            table[[*types, UNUSUAL]] = True
            wanted &= table[self._index.types]
        rows = np.flatnonzero(wanted).tolist()
        if types is None or not types.isdisjoint(RUN_CLASSES):
            rows = sorted(rows + self._gathered[1])
        found = [(row, self._one(row)) for row in rows]
        if types is None:
            return found
        return [(row, one) for row, one in found if _data_type(one) in types]

    # --- rows ----------------------------------------------------------------------------------------

    @cached_property
    def _unusual_rows(self) -> list[int]:
        return np.flatnonzero(self._index.types == UNUSUAL).tolist()

    @cached_property
    def _is_mass(self) -> Mask:
        types = self._index.types
        found = np.zeros(len(types), np.bool_)
        for type_id in RUN_CLASSES:
            found |= types == type_id
        return found

    @cached_property
    def _is_no_op(self) -> Mask:
        index = self._index
        found: Mask = (index.types == NO_OP_TYPE) & (index.value_sizes == len(_NO_OP_VALUE))
        for at in (2, 3):
            found &= self._array.take(index.value_starts + at, mode="clip") == _NO_OP_VALUE[at]
        return found

    @cached_property
    def _gathered(self) -> tuple[list[tuple[Run, Positions]], list[int]]:
        mass = np.flatnonzero(self._is_mass)
        if not len(mass):
            return [], []
        index = self._index
        runs, left = gather_numbered_runs(self._array, index.value_starts[mass], index.value_sizes[mass])
        return [(run, mass[numbers]) for run, numbers in runs], mass[left].tolist()

    def _one(self, row: int) -> VersionedRecord:
        known = self._read.get(row)
        if known is not None:
            return known
        index = self._index
        try:
            if index.types[row] != UNUSUAL:
                start = int(index.value_starts[row])
                return decode_value_at(self._data, start, start + int(index.value_sizes[row]))
            delta, _, _, start, end = read_frame(self._data, int(index.starts[row]), int(index.ends[row]))
            if delta != self._deltas[row]:
                raise MalformedData(f"offset delta {delta} where {self._deltas[row]} is due")
            self._read[row] = decode_value_at(self._data, start, end)
        except MalformedData as error:
            batch = int(np.searchsorted(self._first_rows, row + self._first_row, "right")) - 1
            raise BadRow(batch, error) from error
        return self._read[row]


class BadRow(MalformedData):
    """A record that is not the format; ``batch`` is the number of its batch."""

    def __init__(self, batch: int, reason: MalformedData) -> None:
        super().__init__(str(reason))
        self.batch = batch


def _data_type(one: VersionedRecord) -> int:
    schema = SCHEMA_OF_CLASS[type(one.record)]
    return -1 if schema.is_control else schema.type_id


def _deltas_due(array: npt.NDArray[np.uint8], at: Positions, deltas: Positions) -> tuple[Positions, Mask]:
    """Where the varints at these positions end if they are the numbers that are due, and whether they are."""
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


def _bodies(data: bytes, array: npt.NDArray[np.uint8], begins: Positions, ends: Positions) -> tuple[Positions, Mask]:
    """Where records go on behind their lengths, and whether these say where they end."""
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


class _Walk:
    """Finds where records end: the next one begins there."""

    def __init__(self, data: bytes, array: npt.NDArray[np.uint8]) -> None:
        self._data = data
        self._array = array
        self._ends: list[int] = []
        self._pieces: list[Positions] = []
        self._flushed = 0

    @property
    def count(self) -> int:
        return self._flushed + len(self._ends)

    def ends(self) -> Positions:
        """Of all records so far."""
        self._flush()
        return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)

    def batch(self, pos: int, end: int, count: int) -> None:
        """The records from ``pos`` to ``end``, which must be ``count``. A single one ends with its batch."""
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
        if pos > end or (pos < end and not left):
            raise MalformedData(f"{count} records do not fill their batch: the last one ends {pos - end} bytes off")

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
        self._flushed += count
        return count, pos + count * size

    def _flush(self) -> None:
        if self._ends or not self._pieces:
            self._pieces.append(np.array(self._ends, np.int64))
            self._flushed += len(self._ends)
            self._ends = []
