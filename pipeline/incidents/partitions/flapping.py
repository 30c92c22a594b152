"""Partitions whose ISR shrinks and grows again and again. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Ints
from quorate.pipeline.incidents.partitions.changes import Changes
from quorate.pipeline.incidents.tables import FLAPPING, table_of, times

#: Room for a time in milliseconds beside a partition's number in one int64.
_MS_BITS: Final = 42


def flapping(changes: Changes, more_than: int, window: timedelta) -> pa.Table:
    """Partitions whose ISR shrank and grew again more often than that within the time: a table of ``FLAPPING``."""
    versions = changes.versions
    moves = np.flatnonzero(changes.shrank | changes.grew)
    is_flap = np.zeros(len(moves), np.bool_)
    is_flap[1:] = changes.grew[moves[1:]] & changes.shrank[moves[:-1]]
    is_flap[1:] &= versions.group[moves[1:]] == versions.group[moves[:-1]]
    flaps = moves[is_flap]
    group, at_ms = versions.group[flaps], versions.time_us[flaps] // 1000
    keys = group << _MS_BITS | at_ms
    ordered = np.sort(keys)
    since = np.maximum(at_ms - int(window.total_seconds() * 1000), 0)
    near = np.searchsorted(ordered, keys, "right") - np.searchsorted(ordered, group << _MS_BITS | since, "left")
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    if not len(starts):
        return FLAPPING.empty_table()
    most = np.maximum.reduceat(near, starts)
    kept = np.flatnonzero(most > more_than)
    counts = np.diff(np.append(starts, len(group)))
    gained = changes.gained[flaps]
    time_us = versions.time_us[flaps]
    shown = zip(starts[kept], starts[kept] + counts[kept], strict=True)
    columns = {
        **versions.key(flaps[starts[kept]]),
        "first_offset": pa.array(versions.offset[flaps[starts[kept]]]),
        "from_time": times(np.minimum.reduceat(time_us, starts)[kept]),
        "to_time": times(np.maximum.reduceat(time_us, starts)[kept]),
        "flaps": pa.array(counts[kept]),
        "most": pa.array(most[kept]),
        "broker": pa.array([_most_often(gained[start:end]) for start, end in shown], pa.int32()),
    }
    return table_of(columns, FLAPPING)


def _most_often(brokers: Ints) -> int:
    """The most frequent one; of several the one that came first."""
    counts = np.bincount(brokers)
    return int(brokers[counts[brokers].argmax()])
