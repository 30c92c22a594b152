"""Batches as columns: the fast way to read mass records.

``decode_batch`` gives a batch's records in log order, mass records as runs. A long run of one shape is found by
comparing the constant bytes at one stride. Where shapes alternate, as in logs written by Kafka, the records are
indexed and then gathered by shape, which moves records past each other only where that means nothing: never two of
one partition, and of other types only a topic or a config past the partitions declared with it.
``metadata_log.batch.iter_records`` is the row path; both always say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from metadata_log import wire
from metadata_log.batch import HEADER_BYTES, Frame, parse_header, read_frame
from metadata_log.codec import decode_control, decode_value
from metadata_log.errors import MalformedData
from metadata_log.gathering import gather_runs, unrepeated_stretches
from metadata_log.record_index import RecordIndex, index_records
from metadata_log.records import VersionedRecord
from metadata_log.run_codec import matching_rows, run_of
from metadata_log.run_layout import RUN_CLASSES, read_layout, row_form
from metadata_log.runs import PartitionChangeRun, PartitionRun, Run
from metadata_log.wire import Buffer

#: What a batch holds, in the order of its offsets.
BatchItem = VersionedRecord | PartitionRun | PartitionChangeRun

#: Records below which a run is not worth its set-up: they are read one by one.
_RUN_ROWS_MIN: Final = 32
#: So many short runs in a row mean that shapes alternate: from there on the records are indexed.
_SHORT_RUNS_MAX: Final = 4

_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE = 2, 3, 4, 5
_ONE_BY_ONE, _CREATIONS, _CHANGES = 0, 1, 2
#: By type id, what kind of stretch a record belongs to.
_STRETCH_KINDS: Final = np.full(256, _ONE_BY_ONE, np.uint8)
_STRETCH_KINDS[[_TOPIC, _PARTITION, _CONFIG]] = _CREATIONS
_STRETCH_KINDS[_PARTITION_CHANGE] = _CHANGES


def decode_batch(buf: Buffer, pos: int = 0) -> Iterator[BatchItem]:
    """The records of the batch at ``pos``. The caller has checked the CRC.

    Raises:
        MalformedData: framing, count or a value is not the format. UnsupportedRecord: type or version unknown.
    """
    header = parse_header(buf, pos)
    end_delta = header.record_count
    return _Reader(buf, pos + HEADER_BYTES, pos + header.size, 0, end_delta, header.is_control).items()


def decode_body(body: Buffer, first_delta: int, record_count: int) -> Iterator[BatchItem]:
    """The data records of a piece of a batch body, whose offset deltas begin with ``first_delta``.

    Raises:
        MalformedData, UnsupportedRecord: as ``decode_batch``.
    """
    return _Reader(body, 0, len(body), first_delta, first_delta + record_count, False).items()


class _Reader:
    """Walks records; ``pos`` and ``delta`` are where the next one begins and which it must be."""

    def __init__(self, buf: Buffer, pos: int, end: int, delta: int, end_delta: int, is_control: bool) -> None:
        self.buf = buf if isinstance(buf, bytes) else memoryview(buf)
        self.pos = pos
        self.end = end
        self.delta = delta
        self.end_delta = end_delta
        self.is_control = is_control

    def items(self) -> Iterator[BatchItem]:
        short_runs = 0
        while self.pos < self.end:
            frame = read_frame(self.buf, self.pos, self.end)
            if not self._may_begin_run(frame):
                yield self._row(frame)
                continue
            if short_runs == _SHORT_RUNS_MAX:
                yield from self._indexed()
                continue
            run, count = self._strided_run(frame)
            if run is not None:
                short_runs = 0
                yield run
                continue
            short_runs += 1
            for _ in range(count):
                yield self._row(read_frame(self.buf, self.pos, self.end))
        if self.delta != self.end_delta:
            raise MalformedData(f"records end at offset delta {self.delta}, not {self.end_delta}")

    def _may_begin_run(self, frame: Frame) -> bool:
        _, key_size, _, value_start, value_end = frame
        if self.is_control or self.end_delta - self.delta < _RUN_ROWS_MIN:
            return False
        return key_size == -1 and value_end - value_start > 1 and self.buf[value_start + 1] in RUN_CLASSES

    def _row(self, frame: Frame) -> VersionedRecord:
        """One record, which lies at ``pos``; moves past it."""
        delta, key_size, key_start, value_start, value_end = frame
        if delta != self.delta:
            raise MalformedData(f"offset delta {delta} where {self.delta} is due")
        self.pos = value_end + 1
        self.delta += 1
        value = bytes(self.buf[value_start:value_end])
        if self.is_control:
            return decode_control(self.buf[key_start : key_start + max(key_size, 0)], value)
        return decode_value(value)

    def _strided_run(self, frame: Frame) -> tuple[Run | None, int]:
        """The longest run of one shape that begins here, if it is long enough, and the number of its rows.

        Moves past the run if there is one.
        """
        _, _, _, value_start, value_end = frame
        layout = read_layout(bytes(self.buf[value_start:value_end]))
        if layout is None:
            return None, 1
        width = len(wire.varint(self.delta))
        form = row_form(layout, width)
        rows_max = min((self.end - self.pos) // form.size, (1 << (7 * width - 1)) - self.delta)
        rows = np.frombuffer(self.buf, np.uint8, rows_max * form.size, self.pos).reshape(rows_max, form.size)
        count = matching_rows(rows, form, self.delta)
        if count < _RUN_ROWS_MIN:
            return None, max(count, 1)
        self.pos += count * form.size
        self.delta += count
        return run_of(layout, rows[:count, form.value_start : form.value_start + layout.size]), count

    # --- gathering -----------------------------------------------------------------------------------

    def _indexed(self) -> Iterator[BatchItem]:
        """The rest of the records, or all up to one whose length is not as usual; moves past them."""
        index = index_records(self.buf, self.pos, self.end, self.delta)
        first_delta = self.delta
        if not len(index):
            yield self._row(read_frame(self.buf, self.pos, self.end))
            return
        kinds = _STRETCH_KINDS[index.types]
        borders = (np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist()
        for first, end in pairwise([0, *borders, len(index)]):
            if kinds[first] == _ONE_BY_ONE or end - first < _RUN_ROWS_MIN:
                yield from self._rows_at(index, first_delta, range(first, end))
            else:
                yield from self._stretch(index, first_delta, first, end)
        self.pos = int(index.ends[-1])
        self.delta = first_delta + len(index)

    def _rows_at(self, index: RecordIndex, first_delta: int, numbers: Iterable[int]) -> Iterator[VersionedRecord]:
        for number in numbers:
            self.pos = int(index.starts[number])
            self.delta = first_delta + number
            yield self._row(read_frame(self.buf, self.pos, self.end))

    def _stretch(self, index: RecordIndex, first_delta: int, first: int, end: int) -> Iterator[BatchItem]:
        is_mass = np.isin(index.types[first:end], list(RUN_CLASSES))
        mass = np.flatnonzero(is_mass) + first
        if len(mass) < _RUN_ROWS_MIN:
            yield from self._rows_at(index, first_delta, range(first, end))
            return
        yield from self._rows_at(index, first_delta, (np.flatnonzero(~is_mass) + first).tolist())
        array = np.frombuffer(self.buf, np.uint8)
        starts, sizes = index.value_starts[mass], index.value_sizes[mass]
        for begin, stop in unrepeated_stretches(array, starts):
            runs = None
            if stop - begin >= _RUN_ROWS_MIN:
                runs = gather_runs(array, starts[begin:stop], sizes[begin:stop])
            if runs is None:
                yield from self._rows_at(index, first_delta, mass[begin:stop].tolist())
            else:
                yield from runs
