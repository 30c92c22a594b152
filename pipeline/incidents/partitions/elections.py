"""Elections that may have lost data. Pure; they are few, and looked at one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.incidents.partitions.changes import NAMES, RISKY_CODES, Changes
from quorate.pipeline.incidents.partitions.versions import PartitionVersions
from quorate.pipeline.incidents.tables import RISKY_ELECTIONS, table_of, times
from quorate.snapshots.incidents.findings import Row


def risky_elections(changes: Changes) -> pa.Table:
    """Elections of a leader that was neither in the ISR nor eligible: a table of ``RISKY_ELECTIONS``."""
    versions = changes.versions
    elections = np.flatnonzero(np.isin(changes.cause, RISKY_CODES))
    starts = np.append(np.flatnonzero(versions.is_start), len(versions))
    # Within one transaction an election is told once.
    found: dict[tuple[Any, ...], Row] = {}
    for row in elections.tolist():
        group = int(versions.group[row])
        past = np.arange(starts[group], starts[group + 1])
        key = (group, int(versions.offset[row]), int(changes.cause[row]), int(versions.leader[row]))
        if key not in found and versions.offset[past[0]] < versions.offset[row]:
            found[key] = {"row": row, "kind": NAMES[changes.cause[row]], **_cost(versions, row, past)}
    return _table(versions, list(found.values()))


def _table(versions: PartitionVersions, found: list[Row]) -> pa.Table:
    rows = np.array([one.pop("row") for one in found], np.int64)
    columns = {
        **versions.key(rows),
        "offset": pa.array(versions.offset[rows]),
        "time": times(versions.time_us[rows]),
        "leader": pa.array(versions.leader[rows]),
    }
    for name in RISKY_ELECTIONS.names:
        if name not in columns:
            columns[name] = pa.array([one[name] for one in found], RISKY_ELECTIONS.field(name).type)
    return table_of(columns, RISKY_ELECTIONS)


def _cost(versions: PartitionVersions, row: int, versions_of: Longs) -> Row:
    """The records that others may have written before one election, by all versions of its partition."""
    past = versions_of[versions.offset[versions_of] < versions.offset[row]]
    ends = versions.time_us[np.minimum(past + 1, versions_of[-1])]
    begins, leader = versions.time_us[past], int(versions.leader[row])
    led = np.flatnonzero(versions.leader[past] >= 0)
    member = np.flatnonzero(_has(versions, past, leader))
    if not len(led):
        return {"last_isr": None, "ahead": None, "left_isr": _at(ends, member), "isr_ended": None, "exposed_ms": None}
    isr_ended, left_isr = int(ends[led[-1]]), _at(ends, member)
    last_isr = versions.isr.take(past[led[-1:]]).flat().tolist()
    ahead = []
    for replica in last_isr:
        if replica != leader:
            # What is behind the end of the last ISR is of no interest: that version, which lacks them all, is no
            # absence.
            absent = ~_has(versions, past, replica) & (begins < isr_ended)
            since = int(ends[absent].max()) if absent.any() else int(versions.time_us[versions_of].min())
            ahead.append((isr_ended // 1000 - since // 1000, replica))
    exposed = 0 if leader in last_isr else None if left_isr is None else isr_ended // 1000 - left_isr // 1000
    return {
        "last_isr": last_isr,
        "ahead": [{"in_isr_ms": held, "broker": replica} for held, replica in sorted(ahead, reverse=True)] or None,
        "left_isr": left_isr,
        "isr_ended": isr_ended,
        "exposed_ms": exposed,
    }


def _has(versions: PartitionVersions, rows: Longs, broker: int) -> Any:
    return versions.isr.take(rows).contains(np.full(len(rows), broker, np.int32))


def _at(ends: Longs, places: Longs) -> int | None:
    """The end of the last one of these."""
    return int(ends[places[-1]]) if len(places) else None
