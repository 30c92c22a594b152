"""Mass events: instants of one kind and broker that follow each other closely are one event. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby

from quorate.snapshots.incidents.findings import Row

_SUMS = ("partitions", "leaders_moved", "leaders_lost", "isr_shrunk", "isr_grown")


def mass_events(instants: Iterable[Row], gap: timedelta, at_least: int) -> list[Row]:
    """The events of at least so many changes, in order of offset, each as its instants' row with ``to_time``.

    A controller answers a broker's return in many batches, and works off a broker's loss in slices: both are one event.
    """
    ordered = sorted(instants, key=lambda row: (*_group(row), row["time"], row["from_offset"]))
    found: list[Row] = []
    for _, rows in groupby(ordered, key=_group):
        open_: Row | None = None
        for row in rows:
            if open_ is None or row["time"] - open_["to_time"] > gap:
                open_ = dict(row, to_time=row["time"])
                found.append(open_)
            else:
                _join(open_, row)
    kept = [row for row in found if row["partitions"] >= at_least]
    return sorted(kept, key=lambda row: (row["cluster_id"], row["from_offset"]))


def _group(row: Row) -> tuple[str, str, int, int]:
    broker, offset = row["broker"], row["cause_offset"]
    return row["cluster_id"], row["cause"], -1 if broker is None else broker, -1 if offset is None else offset


def _join(event: Row, row: Row) -> None:
    event["to_time"] = row["time"]
    event["from_offset"] = min(event["from_offset"], row["from_offset"])
    event["to_offset"] = max(event["to_offset"], row["to_offset"])
    for name in _SUMS:
        event[name] = (event[name] or 0) + (row[name] or 0)
