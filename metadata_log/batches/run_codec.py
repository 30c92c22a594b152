"""Runs as rows of bytes and back: whole records of one shape at one stride, handled a column at a time.

What is done once for a block of rows is cheap, what is done once for a row is not: so a field goes between its column
and the rows as one opaque element of its full width, and constant bytes are written and compared for all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.run_layout import RUN_CLASSES, Column, Layout, RowForm, layout_of, row_form
from quorate.metadata_log.batches.runs import ByteColumn, Run
from quorate.metadata_log.records import wire

#: Elements as they are on the wire, and in a run, by their bytes.
_WIRE_TYPES: Final[dict[int, Any]] = {1: np.int8, 4: ">i4", 16: np.uint8}
_RUN_TYPES: Final[dict[int, Any]] = {1: np.int8, 4: np.int32, 16: np.uint8}

#: Rows handled at once, so that they stay in a processor's cache from one column to the next.
_BLOCK_ROWS: Final = 8192
#: Rows compared in the first look for the end of a run; each further look takes more of them, up to a block.
_FIRST_LOOK_ROWS: Final = 64
_LOOK_GROWTH: Final = 8
#: Forms whose constant bytes are kept for a block of rows, and the most bytes of each: a large batch has three for each
#: shape of its records. Of long records a block has fewer.
_FORMS_KEPT: Final = 16
_BLOCK_BYTES: Final = 1024 * 1024
#: Varints below this number are kept: the offset deltas of all batches but large ones.
_VARINTS_KEPT: Final = 1 << 15


def delta_widths(first_delta: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Cut ``count`` offset deltas where their varint grows: (first, end, width), both counted from ``first_delta``."""
    first = 0
    while first < count:
        width = len(wire.varint(first_delta + first))
        end = min(count, (1 << (7 * width - 1)) - first_delta)
        yield first, end, width
        first = end


def varints(first: int, count: int, width: int) -> ByteColumn:
    """The zigzag varints of the numbers from ``first`` on, which all take ``width`` bytes: uint8[count, width].

    Not to be written to.
    """
    if first + count > _VARINTS_KEPT:
        return _made_varints(first, count, width)
    lowest, kept = _kept_varints(width)
    return kept[first - lowest : first - lowest + count]


@cache
def _kept_varints(width: int) -> tuple[int, ByteColumn]:
    """The lowest number whose varint takes ``width`` bytes, and those from it on as far as they are kept."""
    lowest = 1 << (7 * width - 8) if width > 1 else 0
    kept = np.ascontiguousarray(_made_varints(lowest, min(_VARINTS_KEPT, 1 << (7 * width - 1)) - lowest, width))
    kept.setflags(write=False)
    return lowest, kept


def _made_varints(first: int, count: int, width: int) -> ByteColumn:
    number: np.dtype[Any] = np.dtype("<u4" if width <= 4 else "<u8")
    zigzag = np.arange(first << 1, (first + count) << 1, 2, dtype=number)
    packed = np.zeros(count, number)
    for byte in range(width):
        more = 128 if byte < width - 1 else 0
        packed |= (zigzag >> number.type(7 * byte) & number.type(127) | number.type(more)) << number.type(8 * byte)
    return packed.view(np.uint8).reshape(count, number.itemsize)[:, :width]


# --- writing -----------------------------------------------------------------------------------------


def encode_run(run: Run, first_delta: int) -> bytearray:
    """The run's records, framed, with offset deltas from ``first_delta`` on."""
    layout = _layout_of_run(run)
    forms = [(row_form(layout, width), first, end) for first, end, width in delta_widths(first_delta, len(run))]
    out = bytearray(sum(form.size * (end - first) for form, first, end in forms))
    start = 0
    for form, first, end in forms:
        rows = np.frombuffer(out, np.uint8, (end - first) * form.size, start).reshape(end - first, form.size)
        for at in range(0, len(rows), _BLOCK_ROWS):
            _put_rows(rows[at : at + _BLOCK_ROWS], form, run, first + at, first_delta + first + at)
        start += rows.size
    return out


def _put_rows(rows: ByteColumn, form: RowForm, run: Run, first: int, first_delta: int) -> None:
    """Make the rows the run's records from ``first`` on."""
    count = len(rows)
    _put_bytes(rows, 0, np.frombuffer(form.template, np.uint8)[None, :])
    _put_bytes(rows, form.delta_start, varints(first_delta, count, form.delta_width))
    for column in form.layout.columns:
        if column.size:
            values = getattr(run, column.name)[first : first + count]
            _put_bytes(rows, form.value_start + column.start, _wire_bytes(column, values))


def _layout_of_run(run: Run) -> Layout:
    lengths: dict[str, int | None] = {}
    for name, column in run.columns():
        is_array = column.ndim - (column.dtype == np.uint8) == 2
        lengths[name] = column.shape[1] if is_array else None
    return layout_of(run.TYPE_ID, run.version, lengths)


def _put_bytes(rows: ByteColumn, start: int, data: ByteColumn) -> None:
    """Put ``data`` (uint8[n, size], or one row for all) into the rows."""
    size = data.shape[1]
    rows[:, start : start + size].view(f"V{size}")[...] = data.view(f"V{size}")


def _wire_bytes(column: Column, values: npt.NDArray[Any]) -> ByteColumn:
    wire_values = np.ascontiguousarray(values, _WIRE_TYPES[column.element_bytes])
    return wire_values.view(np.uint8).reshape(len(values), column.size)


# --- reading -----------------------------------------------------------------------------------------


@lru_cache(maxsize=_FORMS_KEPT)
def _constants(form: RowForm) -> tuple[ByteColumn, ByteColumn]:
    """A form's template for each row of a block, and where it has constant bytes, offset deltas left out."""
    count = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // form.size))
    end = form.delta_start + form.delta_width
    mask = form.mask[: form.delta_start] + bytes(form.delta_width) + form.mask[end:]
    tiled = [np.frombuffer(row * count, np.uint8).reshape(count, -1) for row in (form.template, mask)]
    return tiled[0], tiled[1]


def matching_rows(rows: ByteColumn, form: RowForm, first_delta: int) -> int:
    """The number of rows from the first on that have the form's constant bytes and the offset deltas that are due."""
    if not len(rows):
        return 0
    template, mask = _constants(form)
    done, look = 0, min(_FIRST_LOOK_ROWS, len(template))
    scratch = np.empty((0, form.size), np.uint8)
    while done < len(rows):
        count = min(look, len(rows) - done)
        if len(scratch) < count:
            scratch = np.empty((count, form.size), np.uint8)
        some = rows[done : done + count]
        differs = np.bitwise_xor(some, template[:count], out=scratch[:count])
        differs &= mask[:count]
        deltas = _bytes_of(some, form.delta_start, form.delta_width)
        due = varints(first_delta + done, count, form.delta_width)
        if differs.max() or not np.array_equal(deltas, due):
            return done + int(np.argmax(differs.any(axis=1) | (deltas != due).any(axis=1)))
        done += count
        look = min(look * _LOOK_GROWTH, len(template))
    return done


def run_of(layout: Layout, values: ByteColumn) -> Run:
    """The run whose records have these values: uint8[n, layout.size], constant bytes already checked."""
    columns = {column.name: _column(column, values) for column in layout.columns}
    return RUN_CLASSES[layout.type_id](version=layout.version, **columns)


def _column(column: Column, values: ByteColumn) -> npt.NDArray[Any]:
    count, width = len(values), column.element_bytes
    shape = (count,) if column.length is None else (count, column.length)
    if width == 16:
        shape = (*shape, 16)
    if not column.size:
        return np.empty(shape, _RUN_TYPES[width])
    raw = _bytes_of(values, column.start, column.size)
    elements: npt.NDArray[Any] = raw.view(_WIRE_TYPES[width]).astype(_RUN_TYPES[width], copy=False)
    return elements.reshape(shape)


def _bytes_of(rows: ByteColumn, start: int, size: int) -> ByteColumn:
    """Some bytes of every row, one row's behind the other's: uint8[n, size]."""
    return np.ascontiguousarray(rows[:, start : start + size].view(f"V{size}")).view(np.uint8).reshape(-1, size)
