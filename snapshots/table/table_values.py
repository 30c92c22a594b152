"""The record values of many partitions, one after the other in the order of their rows: what a digest is made of."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.batches.batch import read_frame
from quorate.metadata_log.batches.run_codec import encode_run
from quorate.metadata_log.batches.runs import PartitionRun
from quorate.snapshots.table.pages import Rows
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.record_versions import NEWEST_LEVEL
from quorate.snapshots.table.table_to_runs import partition_runs

#: An offset delta from which on a million records have deltas of one width, so that all records are equally long.
_FIRST_DELTA: Final = 8192


def partition_values(table: PartitionTable, rows: Rows) -> tuple[memoryview, NDArray[np.int64]]:
    """PartitionRecord values, newest version, of ascending rows (below a million): all bytes; ends, int64[n]."""
    groups = [(positions, _values(run)) for positions, run in partition_runs(table, rows, NEWEST_LEVEL)]
    sizes = np.empty(len(rows), np.int64)
    for positions, values in groups:
        sizes[positions] = values.shape[1]
    ends = np.cumsum(sizes)
    if len(groups) == 1:
        return np.ascontiguousarray(groups[0][1]).reshape(-1).data, ends
    joined = np.empty(int(sizes.sum()), np.uint8)
    for positions, values in groups:
        size = values.shape[1]
        element = np.dtype(f"V{size}")
        # One element at every byte: a whole value is put at once, wherever it begins.
        places = np.ndarray((len(joined) - size + 1,), element, joined.data, strides=(1,))
        places[ends[positions] - size] = np.ascontiguousarray(values).view(element)[:, 0]
    return joined.data, ends


def _values(run: PartitionRun) -> NDArray[np.uint8]:
    """uint8[n, size]: the values of a run's records."""
    framed = encode_run(run, _FIRST_DELTA)
    _, _, _, value_start, value_end = read_frame(framed, 0, len(framed))
    return np.frombuffer(framed, np.uint8).reshape(len(run), -1)[:, value_start:value_end]
