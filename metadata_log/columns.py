"""Batches as columns: the fast way to write and to read mass records.

``decode_batch`` gives a batch's records in log order, mass records as runs. A long run of one shape is found by
comparing the constant bytes at one stride. Where shapes alternate, as in logs written by Kafka, boundaries are walked
one by one and the rows are gathered by shape: allowed only where no partition occurs twice among them.
``metadata_log.batch.iter_records`` is the row path; both always say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from metadata_log import wire
from metadata_log.batch import HEADER_BYTES, parse_header, walk_frames
from metadata_log.codec import decode_control, decode_value
from metadata_log.errors import MalformedData
from metadata_log.records import VersionedRecord
from metadata_log.run_layout import RUN_CLASSES, Column, Layout, layout_of, read_layout
from metadata_log.runs import PartitionChangeRun, PartitionRun, Run
from metadata_log.wire import Buffer

#: What a batch holds, in the order of its offsets.
BatchItem = VersionedRecord | PartitionRun | PartitionChangeRun

#: Rows below which a strided run is not worth its set-up: gathered or read as rows instead.
_STRIDED_ROWS_MIN: Final = 32
#: Rows of one shape below which a gathered group is read as rows.
_GATHERED_ROWS_MIN: Final = 4
#: Rows compared in the first look for a strided run; each further look takes eight times as many.
_PROBE_ROWS: Final = 64
_PROBE_GROWTH: Final = 8

#: One element on the wire, by its bytes; a whole element at a time is copied, not its bytes.
_ELEMENTS: Final[dict[int, np.dtype[Any]]] = {1: np.dtype(np.int8), 4: np.dtype(">i4"), 16: np.dtype("V16")}

_Rows = npt.NDArray[np.uint8]


# --- writing -----------------------------------------------------------------------------------------


def encode_run(run: Run, first_delta: int) -> list[bytes]:
    """The run's records, framed, with offset deltas from ``first_delta`` on; pieces to be joined."""
    layout = _layout_of_run(run)
    count = len(run)
    tail = b"\x01" + wire.varint(layout.size)  # null key, then the value's length
    pieces = []
    first = 0
    while first < count:
        width = len(wire.varint(first_delta + first))
        end = min(count, (1 << (7 * width - 1)) - first_delta)  # where the varint grows by a byte
        length = 2 + width + len(tail) + layout.size + 1
        head = wire.varint(length) + b"\0\0"
        rows = np.empty((end - first, len(head) + length - 2), np.uint8)
        rows[:, : len(head)] = np.frombuffer(head, np.uint8)
        _put_varints(rows, len(head), np.arange(first_delta + first, first_delta + end), width)
        start = len(head) + width
        rows[:, start : start + len(tail)] = np.frombuffer(tail, np.uint8)
        _put_values(rows[:, start + len(tail) : -1], layout, run, first, end)
        rows[:, -1] = 0  # no headers
        pieces.append(rows.tobytes())
        first = end
    return pieces


def _layout_of_run(run: Run) -> Layout:
    lengths: dict[str, int | None] = {}
    for name, column in run.columns():
        is_array = column.ndim - (column.dtype == np.uint8) == 2
        lengths[name] = column.shape[1] if is_array else None
    return layout_of(run.TYPE_ID, run.version, lengths)


def _put_varints(rows: _Rows, start: int, values: npt.NDArray[Any], width: int) -> None:
    zigzag = values << 1
    for byte in range(width):
        more = 128 if byte < width - 1 else 0
        rows[:, start + byte] = (zigzag >> (7 * byte)) & 127 | more


def _put_values(rows: _Rows, layout: Layout, run: Run, first: int, end: int) -> None:
    for start, data in layout.constants:
        rows[:, start : start + len(data)] = np.frombuffer(data, np.uint8)
    for column in layout.columns:
        if column.size == 0:
            continue
        values = getattr(run, column.name)[first:end]
        target = rows[:, column.start : column.start + column.size].view(_ELEMENTS[column.element_bytes])
        if column.element_bytes == 16:
            values = np.ascontiguousarray(values).view(_ELEMENTS[16])
        target[...] = values.reshape(target.shape)


# --- reading -----------------------------------------------------------------------------------------


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
        self.buf = memoryview(buf)
        self.bytes = np.frombuffer(buf, np.uint8)
        self.pos = pos
        self.end = end
        self.delta = delta
        self.end_delta = end_delta
        self.is_control = is_control

    def items(self) -> Iterator[BatchItem]:
        while self.pos < self.end:
            mass_type = None if self.is_control else self._mass_type(self.pos)
            if mass_type is None:
                yield self._row()
                continue
            run = self._strided_run()
            if run is not None:
                yield run
            else:
                yield from self._gathered(mass_type)
        if self.delta != self.end_delta:
            raise MalformedData(f"records end at offset delta {self.delta}, not {self.end_delta}")

    def _mass_type(self, pos: int) -> int | None:
        """The type of the record at ``pos`` if it is one that comes in masses."""
        try:
            _, at = wire.read_uvarint(self.buf, pos)
            _, at = wire.read_uvarint(self.buf, at + 2)
            _, at = wire.read_uvarint(self.buf, at + 1)
            type_id = self.buf[at + 1]
        except (MalformedData, *wire.DECODE_ERRORS):
            return None  # the row path says what is wrong
        return type_id if type_id in RUN_CLASSES else None

    def _row(self) -> VersionedRecord:
        frame = next(walk_frames(self.buf, self.pos, self.end))
        if frame.offset_delta != self.delta:
            raise MalformedData(f"offset delta {frame.offset_delta} where {self.delta} is due")
        value = bytes(self.buf[frame.value_start : frame.value_end])
        self.pos = frame.value_end + 1
        self.delta += 1
        if self.is_control:
            return decode_control(self.buf[frame.key_start : frame.key_start + max(frame.key_size, 0)], value)
        return decode_value(value)

    def _strided_run(self) -> Run | None:
        """The longest run of one shape that begins here, if it is long enough; moves past it."""
        frame = next(walk_frames(self.buf, self.pos, self.end))
        layout = read_layout(bytes(self.buf[frame.value_start : frame.value_end]))
        if layout is None or frame.offset_delta != self.delta or frame.key_size != -1:
            return None
        stride = frame.value_end + 1 - self.pos
        rows_max = (self.end - self.pos) // stride
        if rows_max < _STRIDED_ROWS_MIN:
            return None
        rows = self.bytes[self.pos : self.pos + rows_max * stride].reshape(rows_max, stride)
        value_at = frame.value_start - self.pos
        delta_width = len(wire.varint(frame.offset_delta))
        delta_at = value_at - len(wire.varint(layout.size)) - 1 - delta_width
        rows_max = min(rows_max, (1 << (7 * delta_width - 1)) - self.delta)
        count = self._matching_rows(rows[:rows_max], layout, delta_at, delta_width, value_at)
        if count < _STRIDED_ROWS_MIN:
            return None
        self.pos += count * stride
        self.delta += count
        return _run_of(layout, rows[:count, value_at : value_at + layout.size])

    def _matching_rows(self, rows: _Rows, layout: Layout, delta_at: int, delta_width: int, value_at: int) -> int:
        """How many rows from the first on have its constant bytes and the offset deltas that are due."""
        constants = [(0, delta_at), (delta_at + delta_width, value_at), (rows.shape[1] - 1, rows.shape[1])]
        constants += [(value_at + start, value_at + start + len(data)) for start, data in layout.constants]
        done, look = 0, _PROBE_ROWS
        while done < len(rows):
            part = rows[done : done + look]
            good = np.ones(len(part), np.bool_)
            for first, end in constants:
                good &= _rows_equal(part[:, first:end], rows[0, first:end])
            due = np.arange(self.delta + done, self.delta + done + len(part))
            expected = np.empty((len(part), delta_width), np.uint8)
            _put_varints(expected, 0, due, delta_width)
            good &= _rows_equal(part[:, delta_at : delta_at + delta_width], expected)
            if not good.all():
                return done + int(np.argmin(good))
            done += len(part)
            look *= _PROBE_GROWTH
        return done

    def _gathered(self, type_id: int) -> Iterator[BatchItem]:
        """The mass records of one type from here on, gathered by shape; moves past them."""
        starts, sizes = self._walk_stretch(type_id)
        runs, rest = self._group(starts, sizes)
        if not rest and not _has_repeats(runs):
            yield from runs
            return
        # A partition that occurs twice must change in the order of the log.
        for start, size in zip(starts, sizes, strict=True):
            yield decode_value(bytes(self.buf[start : start + size]))

    def _walk_stretch(self, type_id: int) -> tuple[list[int], list[int]]:
        """Where the values begin and how long they are, up to the next record of another type."""
        starts: list[int] = []
        sizes: list[int] = []
        for frame in walk_frames(self.buf, self.pos, self.end):
            if frame.offset_delta != self.delta:
                raise MalformedData(f"offset delta {frame.offset_delta} where {self.delta} is due")
            if frame.key_size != -1 or self.buf[frame.value_start + 1] != type_id:
                break
            starts.append(frame.value_start)
            sizes.append(frame.value_end - frame.value_start)
            self.pos = frame.value_end + 1
            self.delta += 1
        return starts, sizes

    def _group(self, starts: list[int], sizes: list[int]) -> tuple[list[Run], bool]:
        """The rows as runs; True if there are rows that no run can hold, or too few to be worth one."""
        runs: list[Run] = []
        start_column, size_column = np.array(starts), np.array(sizes)
        for size in np.unique(size_column).tolist():
            left = start_column[size_column == size]
            while len(left):
                layout = read_layout(bytes(self.buf[left[0] : left[0] + size]))
                if layout is None:
                    return runs, True
                rows = self.bytes[left[:, None] + np.arange(size)]
                good = np.ones(len(left), np.bool_)
                for at, data in layout.constants:
                    good &= _rows_equal(rows[:, at : at + len(data)], np.frombuffer(data, np.uint8))
                runs.append(_run_of(layout, rows[good]))
                left = left[~good]
        return runs, len(starts) < _GATHERED_ROWS_MIN


def _rows_equal(rows: _Rows, expected: _Rows) -> npt.NDArray[np.bool_] | np.bool_:
    equal = rows == expected
    # The usual answer first: reducing along short rows is ten times dearer.
    return np.True_ if equal.all() else equal.all(axis=1)


def _run_of(layout: Layout, values: _Rows) -> Run:
    columns = {column.name: _column(column, values) for column in layout.columns}
    return RUN_CLASSES[layout.type_id](version=layout.version, **columns)


def _column(column: Column, values: _Rows) -> npt.NDArray[Any]:
    count, width = len(values), column.element_bytes
    shape = (count,) if column.length is None else (count, column.length)
    raw = values[:, column.start : column.start + column.size]
    elements = raw.view(_ELEMENTS[width]) if column.size else raw
    if width == 16:
        return np.ascontiguousarray(elements).view(np.uint8).reshape(*shape, 16)
    return elements.astype(np.int32 if width == 4 else np.int8).reshape(shape)


def _has_repeats(runs: list[Run]) -> bool:
    """Whether some partition may occur in more than one row: exact where it says no, a hash where it says yes."""
    if len(runs) < 2:
        return False  # one run keeps the order of its rows
    keys = []
    for run in runs:
        halves = np.ascontiguousarray(run.topic_ids).view(np.uint64)
        # Odd multipliers: the partition and both halves of the id must all count.
        numbers = run.partition_ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        keys.append(halves[:, 0] ^ (halves[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)) ^ numbers)
    all_keys = np.concatenate(keys)
    return len(np.unique(all_keys)) != len(all_keys)
