"""The records of consecutive batches by kind: mass records as runs, all else one by one, as far as it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.batch import CONTROL_ATTRIBUTE, HEADER_BYTES, HeaderFields, iter_records, read_frame
from quorate.metadata_log.batches.gathering import gather_numbered_runs
from quorate.metadata_log.batches.record_index import UNUSUAL, Mask, Positions, RecordIndex, RecordWalk, WrongLength
from quorate.metadata_log.batches.run_layout import RUN_CLASSES
from quorate.metadata_log.batches.runs import Run
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.codec import FRAME_VERSION, decode_value_at
from quorate.metadata_log.records.records import VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS

NO_OP_TYPE: Final = 20
#: Frame version, type, version 0, no tagged field: every NoOpRecord there is.
_NO_OP_VALUE: Final = bytes((FRAME_VERSION, NO_OP_TYPE, 0, 0))


class ChunkIndex:
    """The records of the batches that start at ``starts`` in ``data``; a row each, those outside of ``rows`` left out.

    Methods raise ``BadRow`` where a record is not the format; the constructor where the records of a batch do not fill
    it.
    """

    def __init__(self, data: bytes, starts: Sequence[int], fields: Sequence[HeaderFields], rows: slice) -> None:
        self._data = data
        self._array = np.frombuffer(data, np.uint8)
        counts = np.array([one[6] for one in fields], np.int64)
        self._first_rows = np.cumsum(counts) - counts
        self._first_row = rows.start
        #: By row: what is read one by one, whatever its type.
        self._read: dict[int, VersionedRecord] = {}
        walk = RecordWalk(data)
        for number, (start, (_, size, _, _, attributes, _, count)) in enumerate(zip(starts, fields, strict=True)):
            try:
                if attributes & CONTROL_ATTRIBUTE:
                    for row, logged in enumerate(iter_records(data, start), int(self._first_rows[number])):
                        self._read[row - rows.start] = VersionedRecord(logged.record, logged.version)
                walk.batch(start + HEADER_BYTES, start + size, count)
            except MalformedData as error:
                raise BadRow(number, error) from error
        try:
            whole = walk.index()
        except WrongLength as error:
            raise BadRow(self._batch_of(error.number), error) from error
        self._deltas = (np.arange(len(whole)) - np.repeat(self._first_rows, counts))[rows]
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
            raise BadRow(self._batch_of(row + self._first_row), error) from error
        return self._read[row]

    def _batch_of(self, number: int) -> int:
        """The batch in which a record lies, counted from the first one of all batches."""
        return int(np.searchsorted(self._first_rows, number, "right")) - 1


class BadRow(MalformedData):
    """A record that is not the format; ``batch`` is the number of its batch."""

    def __init__(self, batch: int, reason: MalformedData) -> None:
        super().__init__(str(reason))
        self.batch = batch


def _data_type(one: VersionedRecord) -> int:
    schema = SCHEMA_OF_CLASS[type(one.record)]
    return -1 if schema.is_control else schema.type_id
