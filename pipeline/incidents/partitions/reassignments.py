"""Every change of replicas, from its first record to its last. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Bools, Longs
from quorate.pipeline.incidents.partitions.intervals import edges
from quorate.pipeline.incidents.partitions.versions import NEVER, PartitionVersions
from quorate.pipeline.incidents.tables import REASSIGNMENTS, table_of, times
from quorate.snapshots.incidents.kinds import OPEN, TOPIC_REMOVED

_OUTCOMES: Final = ("completed", "cancelled", TOPIC_REMOVED, OPEN)
_COMPLETED, _CANCELLED, _REMOVED, _OPEN = range(len(_OUTCOMES))


def reassignments(versions: PartitionVersions) -> pa.Table:
    """The reassignments that took a while, and those that were done at once: a table of ``REASSIGNMENTS``."""
    is_open = versions.are_open()
    return pa.concat_tables([_lasting(versions, is_open), _at_once(versions, is_open)])


def _lasting(versions: PartitionVersions, is_open: Bools) -> pa.Table:
    first, end = edges(versions.group, is_open)
    is_ended = end != NEVER
    lasts = np.append(np.flatnonzero(versions.is_start)[1:], len(versions)) - 1
    latest = lasts[versions.group[first]]
    # The last version in which it was open, and the ISR that it ended with, or has now.
    last = np.where(is_ended, end - 1, latest)
    isr = versions.isr.take(np.where(is_ended, end, latest))
    adding, removing = versions.adding.take(last), versions.removing.take(last)
    has_arrived = versions.have_arrived(last, np.where(is_ended, end, 0))
    gone = versions.gone_offset[first]
    outcome = np.select(
        [is_ended & has_arrived, is_ended, gone != NEVER], [_COMPLETED, _CANCELLED, _REMOVED], default=_OPEN
    )
    to_offset = np.where(is_ended, versions.offset[end], gone)
    is_start = versions.is_start[first]
    columns = {
        **versions.key(first),
        "from_offset": pa.array(versions.offset[first]),
        "from_time": times(versions.time_us[first]),
        "to_offset": pa.array(to_offset, mask=to_offset == NEVER),
        "to_time": times(np.where(is_ended, versions.time_us[end], versions.gone_us[first]), to_offset == NEVER),
        "replicas": versions.replicas.take(np.where(is_start, first, first - 1)).array(is_null=is_start),
        "adding": adding.array(),
        "removing": removing.array(),
        "waiting_for": adding.without(isr).array(),
        "outcome": _outcomes(outcome),
    }
    return table_of(columns, REASSIGNMENTS)


def _at_once(versions: PartitionVersions, is_open: Bools) -> pa.Table:
    """Those to replicas that were there already: one record."""
    rows = np.flatnonzero(~versions.is_start & ~is_open)
    rows = rows[~is_open[rows - 1]]
    rows = rows[~versions.replicas.take(rows).equals(versions.replicas.take(rows - 1))]
    now, before = versions.replicas.take(rows), versions.replicas.take(rows - 1)
    offset, time = pa.array(versions.offset[rows]), times(versions.time_us[rows])
    columns = {
        **versions.key(rows),
        "from_offset": offset,
        "from_time": time,
        "to_offset": offset,
        "to_time": time,
        "replicas": before.array(),
        "adding": now.without(before).array(),
        "removing": before.without(now).array(),
        "waiting_for": now.without(now).array(),
        "outcome": _outcomes(np.full(len(rows), _COMPLETED)),
    }
    return table_of(columns, REASSIGNMENTS)


def _outcomes(codes: Longs) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(_OUTCOMES))
