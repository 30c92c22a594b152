"""Mass records that lie here and there in a buffer, gathered into runs by their shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.record_index import Positions
from quorate.metadata_log.batches.run_codec import run_of
from quorate.metadata_log.batches.run_layout import Layout, read_layout
from quorate.metadata_log.batches.runs import ByteColumn, Run

#: Shapes of one size that are looked for. Brokers make a handful; each costs a look at all rows of that size.
_SHAPES_MAX: Final = 64

#: Records below which a run is not worth its set-up: they are read one by one.
RUN_ROWS_MIN: Final = 32

#: Where a mass record's value has its partition id and topic id: behind the head of three bytes, in every version.
_IDS_START: Final = 3
_IDS_BYTES: Final = 20


def gather_runs(array: ByteColumn, starts: Positions, sizes: Positions) -> list[Run] | None:
    """The mass records whose values lie there, as runs; None if there is one that no run can hold.

    Rows of one run are in the order given.
    """
    runs, left = gather_numbered_runs(array, starts, sizes)
    return None if left else [run for run, _ in runs]


def gather_numbered_runs(
    array: ByteColumn, starts: Positions, sizes: Positions
) -> tuple[list[tuple[Run, Positions]], list[int]]:
    """As ``gather_runs``, each run with the numbers of its rows, int64[k], and the numbers no run can hold."""
    runs: list[tuple[Run, Positions]] = []
    left: list[int] = []
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        numbers = np.flatnonzero(sizes == size)
        rows = _gathered(array, starts[numbers], size)
        for _ in range(_SHAPES_MAX):
            layout = read_layout(rows[0].tobytes())
            if layout is None:
                # One that no run can hold may stand before others that one can.
                left.append(int(numbers[0]))
                rows, numbers = rows[1:], numbers[1:]
            else:
                differs = _differences(rows, layout)
                if not differs.max(initial=0):
                    runs.append((run_of(layout, rows), numbers))
                    break
                is_other = _has_any(differs)
                runs.append((run_of(layout, _rows_where(rows, ~is_other)), numbers[~is_other]))
                rows, numbers = _rows_where(rows, is_other), numbers[is_other]
            if not len(rows):
                break
        else:
            left += numbers.tolist()
    return runs, left


def _differences(rows: ByteColumn, layout: Layout) -> ByteColumn:
    """The bytes of uint8[n, layout.size] that are not the layout's constant ones: 0 where they are."""
    # Repeated to their full shape: numpy is slow at one short row against many.
    template, mask = (
        np.frombuffer(row * len(rows), np.uint8).reshape(rows.shape) for row in (layout.template, layout.mask)
    )
    differs = rows ^ template
    differs &= mask
    return differs


def _has_any(rows: ByteColumn) -> npt.NDArray[np.bool_]:
    """bool[n]: whether any byte of a row is not 0. A row must have eight bytes; all mass records are longer."""
    size = rows.shape[1]
    # Eight bytes at a time, the last eight overlapping those before.
    words = [rows[:, at : at + 8].view(np.uint64)[:, 0] for at in (*range(0, size - 8, 8), size - 8)]
    found = words[0].copy()
    for word in words[1:]:
        found |= word
    has_any: npt.NDArray[np.bool_] = found != 0
    return has_any


def _rows_where(rows: ByteColumn, wanted: npt.NDArray[np.bool_]) -> ByteColumn:
    """The rows that are wanted, each copied as a whole."""
    found: ByteColumn = rows.view(f"V{rows.shape[1]}")[wanted[:, None]].view(np.uint8).reshape(-1, rows.shape[1])
    return found


#: Bytes of the value of a mass record up to which it says which partition it is about.
MASS_BYTES_MIN: Final = _IDS_START + _IDS_BYTES


def partition_keys(array: ByteColumn, starts: Positions) -> npt.NDArray[np.uint64]:
    """uint64[n]: a hash of the partition that each mass record whose value begins there is about. Each must have
    ``MASS_BYTES_MIN``.
    """
    ids = _gathered(array, starts + _IDS_START, _IDS_BYTES)
    partition = np.ascontiguousarray(ids[:, :4]).view(np.uint32)[:, 0].astype(np.uint64)
    topic = np.ascontiguousarray(ids[:, 4:]).view(np.uint64)
    # Odd multipliers: the partition and both halves of the topic id must all count.
    keys: npt.NDArray[np.uint64] = topic[:, 0] ^ (topic[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F))
    keys ^= partition * np.uint64(0x9E3779B97F4A7C15)
    return keys


def unrepeated_stretches(array: ByteColumn, starts: Positions) -> Iterator[tuple[int, int]]:
    """Cut the mass records whose values begin there into stretches in none of which a partition occurs twice.

    Partitions are told apart by a hash: exact where it makes no cut, and a needless cut does no harm. Each record must
    have ``MASS_BYTES_MIN``.
    """
    start = 0
    for repeat, earlier in _repeats(partition_keys(array, starts)):
        if earlier >= start:
            yield start, repeat
            start = repeat
    yield start, len(starts)


def _repeats(keys: npt.NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """(row, the last row before it with the same key), by row."""
    in_order = np.sort(keys)  # much faster than finding out where, and there seldom are any
    if not (in_order[1:] == in_order[:-1]).any():
        return
    rows = np.argsort(keys, kind="stable")
    is_repeat = keys[rows[1:]] == keys[rows[:-1]]
    repeats, earlier = rows[1:][is_repeat], rows[:-1][is_repeat]
    by_row = np.argsort(repeats)
    yield from zip(repeats[by_row].tolist(), earlier[by_row].tolist(), strict=True)


def _gathered(array: ByteColumn, starts: Positions, size: int) -> ByteColumn:
    """``size`` bytes from each start on: uint8[n, size]. They must all be there."""
    # Overlapping elements, one at every position: taking some of them copies each as a whole.
    everywhere = np.ndarray((len(array) - size + 1,), f"V{size}", array, strides=(1,))
    return everywhere[starts].view(np.uint8).reshape(len(starts), size)
