"""Elections that may have lost data, told together where they were one event. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from quorate.snapshots.incidents.findings import Row

_TOPICS_MAX: Final = 20


def of_one_election(row: Row) -> Row:
    """A row of the table as a group of one."""
    return {
        "cluster_id": row["cluster_id"],
        "time": row["time"],
        "kind": row["kind"],
        "leader": row["leader"],
        "from_offset": row["offset"],
        "to_offset": row["offset"],
        "partitions": 1,
        "exposed_ms": row["exposed_ms"],
        "ahead": row["ahead"] or [],
        "topics": [row["topic"]],
        "first_partition": f"{row['topic']}-{row['partition']}",
    }


def grouped_elections(rows: Iterable[Row]) -> list[Row]:
    """Groups by time, kind and leader; ``ahead`` and ``exposed_ms`` are those of the worst one, up to 20 topics named.

    Args:
        rows: such groups of parts, or of single elections.
    """
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row["cluster_id"], row["time"], row["kind"], row["leader"])
        found[key] = _joined(found[key], row) if key in found else row
    return sorted(found.values(), key=lambda row: (row["cluster_id"], row["from_offset"], row["kind"], row["leader"]))


def _joined(one: Row, other: Row) -> Row:
    first = min(one, other, key=lambda row: (row["from_offset"], row["first_partition"]))
    worst = max(one, other, key=_badness)
    return dict(
        first,
        to_offset=max(one["to_offset"], other["to_offset"]),
        partitions=one["partitions"] + other["partitions"],
        exposed_ms=worst["exposed_ms"],
        ahead=worst["ahead"],
        topics=sorted({*one["topics"], *other["topics"]})[:_TOPICS_MAX],
    )


def _badness(row: Row) -> tuple[bool, int, list[tuple[int, int]]]:
    exposed = row["exposed_ms"]
    return exposed is not None, exposed or 0, [(one["in_isr_ms"], one["broker"]) for one in row["ahead"]]
