"""Batches as columns: the fast way to read mass records.

``decode_batch`` gives a batch's records in log order, mass records as runs. A long run of one shape is found by
comparing the constant bytes at one stride. Where shapes alternate, as in logs written by Kafka, the records are
indexed and then gathered by shape, which moves records past each other only where that means nothing: never two of
one partition, and of other types only a topic or a config past the partitions declared with it.
``metadata_log.batches.batch.iter_records`` is the row path; both always say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from quorate.metadata_log.batches.batch import HEADER_BYTES, parse_header, read_frame
from quorate.metadata_log.batches.gathering import MASS_BYTES_MIN, RUN_ROWS_MIN, gather_runs, unrepeated_stretches
from quorate.metadata_log.batches.record_index import RecordIndex, RecordWalk
from quorate.metadata_log.batches.run_codec import matching_rows, run_of
from quorate.metadata_log.batches.run_layout import RUN_CLASSES, read_layout, row_form
from quorate.metadata_log.batches.runs import BatchItem, ByteColumn
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec import decode_control, decode_value_at
from quorate.metadata_log.records.wire import Buffer

_NO_RUNS: Final = -1
#: So many short runs in a row mean that shapes alternate: from there on the records are indexed.
_SHORT_RUNS_MAX: Final = 4

#: Rows up to which pieces of one run are copied together: what is done once for a run then costs more than the copy.
_JOINED_ROWS_MAX: Final = 16_384

_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE = 2, 3, 4, 5
_ONE_BY_ONE, _CREATIONS, _CHANGES = 0, 1, 2
#: By type id, what kind of stretch a record belongs to.
_STRETCH_KINDS: Final = np.full(256, _ONE_BY_ONE, np.uint8)
_STRETCH_KINDS[[_TOPIC, _PARTITION, _CONFIG]] = _CREATIONS
_STRETCH_KINDS[_PARTITION_CHANGE] = _CHANGES


def decode_batch(buf: Buffer, pos: int = 0) -> list[BatchItem]:
    """The records of the batch at ``pos``. The caller has checked the CRC.

    Raises:
        MalformedData: framing, count or a value is not the format. UnsupportedRecord: type or version unknown.
    """
    header = parse_header(buf, pos)
    end = pos + header.size
    data, start = (buf, pos) if isinstance(buf, bytes) else (bytes(memoryview(buf)[pos:end]), 0)
    start, end = start + HEADER_BYTES, start + header.size
    if header.is_control:
        return _control_records(data, start, end, header.record_count)
    return _data_records(data, start, end, 0, header.record_count)


def decode_body(body: bytes, first_delta: int, record_count: int) -> list[BatchItem]:
    """The data records of a piece of a batch body, whose offset deltas begin with ``first_delta``.

    Raises:
        MalformedData, UnsupportedRecord: as ``decode_batch``.
    """
    return _data_records(body, 0, len(body), first_delta, first_delta + record_count)


def _data_records(buf: bytes, pos: int, end: int, delta: int, end_delta: int) -> list[BatchItem]:
    if end_delta - delta >= RUN_ROWS_MIN:
        return _ColumnReader(buf, pos, end, delta, end_delta).items()
    found: list[BatchItem] = []
    _, delta = _read_rows(buf, pos, end, delta, _NO_RUNS, found)
    _require_count(delta, end_delta)
    return found


def _read_rows(
    buf: bytes, pos: int, end: int, delta: int, last_run_delta: int, found: list[BatchItem]
) -> tuple[int, int]:
    """Append the records from ``pos`` on to ``found``; where the next one begins, and its offset delta.

    Stops at ``end``, or at a mass record whose offset delta is at most ``last_run_delta``.
    """
    while pos < end:
        found_delta, _, _, value_start, value_end = read_frame(buf, pos, end)
        if found_delta != delta:
            _require_delta(found_delta, delta)
        if delta <= last_run_delta and buf[value_start + 1] in RUN_CLASSES:
            break
        found.append(decode_value_at(buf, value_start, value_end))
        pos = value_end + 1
        delta += 1
    return pos, delta


def _control_records(buf: bytes, pos: int, end: int, count: int) -> list[BatchItem]:
    found: list[BatchItem] = []
    while pos < end:
        delta, key_size, key_start, value_start, value_end = read_frame(buf, pos, end)
        _require_delta(delta, len(found))
        found.append(decode_control(buf[key_start : key_start + max(key_size, 0)], buf[value_start:value_end]))
        pos = value_end + 1
    _require_count(len(found), count)
    return found


def _require_count(delta: int, end_delta: int) -> None:
    if delta != end_delta:
        raise MalformedData(f"records end at offset delta {delta}, not {end_delta}")


def _require_delta(delta: int, due: int) -> None:
    if delta != due:
        raise MalformedData(f"offset delta {delta} where {due} is due")


class _ColumnReader:
    """Walks records that may have runs; ``pos`` and ``delta`` are where the next one begins and which it must be."""

    __slots__ = ("buf", "delta", "end", "end_delta", "found", "pos")

    def __init__(self, buf: bytes, pos: int, end: int, delta: int, end_delta: int) -> None:
        self.buf = buf
        self.pos = pos
        self.end = end
        self.delta = delta
        self.end_delta = end_delta
        self.found: list[BatchItem] = []

    def items(self) -> list[BatchItem]:
        """The records that are left, as data records and runs."""
        short_runs = 0
        while True:
            self.pos, self.delta = _read_rows(
                self.buf, self.pos, self.end, self.delta, self.end_delta - RUN_ROWS_MIN, self.found
            )
            if self.pos == self.end:
                break
            # Here lies a mass record, and enough behind it for a run.
            if short_runs == _SHORT_RUNS_MAX:
                self._indexed()
                continue
            rows = self._strided_run()
            if rows == 0:
                short_runs = 0
            else:
                short_runs += 1
                self._rows(rows)
        _require_count(self.delta, self.end_delta)
        return self.found

    def _rows(self, count: int) -> None:
        """The next records one by one, mass records too."""
        for _ in range(count):
            delta, _, _, value_start, value_end = read_frame(self.buf, self.pos, self.end)
            _require_delta(delta, self.delta)
            self.found.append(decode_value_at(self.buf, value_start, value_end))
            self.pos = value_end + 1
            self.delta += 1

    def _strided_run(self) -> int:
        """The longest run of one shape that begins here, if it is long enough; moves past it then, and gives 0.

        Else the number of records that are to be read one by one before another look is worth its while.
        """
        _, _, _, value_start, value_end = read_frame(self.buf, self.pos, self.end)
        layout = read_layout(self.buf[value_start:value_end])
        if layout is None:
            return 1
        pos, delta = self.pos, self.delta
        pieces: list[ByteColumn] = []
        while True:  # One look for each width of the offset deltas; it ends where the width does, or before.
            width = len(wire.varint(delta))
            form = row_form(layout, width)
            same_width = (1 << (7 * width - 1)) - delta
            rows_max = min((self.end - pos) // form.size, same_width)
            rows = np.frombuffer(self.buf, np.uint8, rows_max * form.size, pos).reshape(rows_max, form.size)
            count = matching_rows(rows, form, delta)
            pieces.append(rows[:count, form.value_start : form.value_start + layout.size])
            pos += count * form.size
            delta += count
            if count < same_width:
                break
        if delta - self.delta < RUN_ROWS_MIN:
            return max(delta - self.delta, 1)
        self.pos, self.delta = pos, delta
        self.found += (run_of(layout, values) for values in _joined(pieces))
        return 0

    # --- gathering -----------------------------------------------------------------------------------

    def _indexed(self) -> None:
        """The rest of the records, by shape; one by one where they are not what their lengths say: that names why."""
        first_delta, count = self.delta, self.end_delta - self.delta
        walk = RecordWalk(self.buf)
        try:
            walk.batch(self.pos, self.end, count, first_delta)
            index = walk.index()
        except MalformedData:
            self.pos, self.delta = _read_rows(self.buf, self.pos, self.end, self.delta, _NO_RUNS, self.found)
            return
        kinds = _STRETCH_KINDS[index.types]
        borders = (np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist()
        for first, end in pairwise([0, *borders, len(index)]):
            if kinds[first] == _ONE_BY_ONE or end - first < RUN_ROWS_MIN:
                self._rows_at(index, first_delta, range(first, end))
            else:
                self._stretch(index, first_delta, first, end)
        self.pos, self.delta = self.end, self.end_delta

    def _rows_at(self, index: RecordIndex, first_delta: int, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.pos = int(index.starts[number])
            self.delta = first_delta + number
            self._rows(1)

    def _stretch(self, index: RecordIndex, first_delta: int, first: int, end: int) -> None:
        # One that is too short to name its partition is no record: it is read first, and refused.
        is_mass = np.isin(index.types[first:end], list(RUN_CLASSES)) & (index.value_sizes[first:end] >= MASS_BYTES_MIN)
        mass = np.flatnonzero(is_mass) + first
        if len(mass) < RUN_ROWS_MIN:
            self._rows_at(index, first_delta, range(first, end))
            return
        self._rows_at(index, first_delta, (np.flatnonzero(~is_mass) + first).tolist())
        array = np.frombuffer(self.buf, np.uint8)
        starts, sizes = index.value_starts[mass], index.value_sizes[mass]
        for begin, stop in unrepeated_stretches(array, starts):
            runs = None
            if stop - begin >= RUN_ROWS_MIN:
                runs = gather_runs(array, starts[begin:stop], sizes[begin:stop])
            if runs is None:
                self._rows_at(index, first_delta, mass[begin:stop].tolist())
            else:
                self.found += runs


def _joined(pieces: list[ByteColumn]) -> Iterator[ByteColumn]:
    """The rows of all pieces: together where they are few, else as they lie."""
    if sum(map(len, pieces)) <= _JOINED_ROWS_MAX:
        yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    else:
        yield from (piece for piece in pieces if len(piece))
