"""Merges the results of the buckets of topics into findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.incidents.partitions.bucket import slow
from quorate.pipeline.incidents.tables import (
    BY_CAUSE,
    BY_CLUSTER,
    BY_EFFECT,
    BY_FLAPPING,
    BY_INSTANT,
    BY_OUTCOME,
    BY_UNCLEAN_STOP,
    INSTANTS,
    Grouping,
    rows_of,
)
from quorate.snapshots.incidents.election_groups import grouped_elections
from quorate.snapshots.incidents.findings import HistorySpan, IncidentFindings, Row, at
from quorate.snapshots.incidents.kinds import OPEN
from quorate.snapshots.incidents.thresholds import Thresholds

#: How the parts that are counts come together.
_GROUPINGS: Final[Mapping[str, Grouping]] = {
    "spans": BY_CLUSTER,
    "effects": BY_EFFECT,
    "unclean_stops": BY_UNCLEAN_STOP,
    "leaderless": BY_CAUSE,
    "under_replicated": BY_CAUSE,
    "under_min_isr": BY_CAUSE,
    "outcomes": BY_OUTCOME,
}


def merge(
    findings: IncidentFindings,
    parts: Mapping[str, Sequence[pa.Table]],
    thresholds: Thresholds,
    now_us: int,
    ends_us: Mapping[str, int],
) -> None:
    """Set the findings about partitions: of the parts of all buckets, by the names that ``bucket.parts_of`` gives.

    Args:
        now_us: until when what lasts was counted; here it counts to the end of its cluster's history.
        ends_us: by cluster until when its log was read, in microseconds since 1970. History ends there, or with the
            last change of a partition: where that is later, or no log was read.
    """
    counts = {name: _grouped(parts.get(name, ()), by) for name, by in _GROUPINGS.items()}
    spans = [HistorySpan(*row.values()) for row in counts["spans"]]
    findings.spans = [replace(one, end=max(one.end, at(ends_us.get(one.cluster_id, 0)))) for one in spans]
    findings.effects = counts["effects"]
    findings.unclean_stops = counts["unclean_stops"]
    behind_ms = {span.cluster_id: now_us // 1000 - int(span.end.timestamp() * 1000) for span in findings.spans}
    findings.leaderless, findings.under_replicated, findings.under_min_isr = (
        [_to_the_end(row, behind_ms[row["cluster_id"]]) for row in counts[name]]
        for name in ("leaderless", "under_replicated", "under_min_isr")
    )
    findings.reassignment_outcomes = counts["outcomes"]
    findings.elections = grouped_elections(row for part in parts.get("elections", ()) for row in rows_of(part))
    findings.reassignments = _reassignments(findings.spans, parts.get("reassignments", ()), thresholds)
    findings.flapping = _grouped(parts.get("flapping", ()), BY_FLAPPING)


def _grouped(parts: Iterable[pa.Table], by: Grouping) -> list[Row]:
    """All groups, by cluster and offset."""
    tables = list(parts)
    if not tables:
        return []
    order = [name for name in ("cluster_id", "from_offset", *by.keys) if name in (*by.keys, *by.hows)]
    found = by.of(pa.concat_tables(tables))
    return rows_of(found.sort_by([(name, "ascending") for name in dict.fromkeys(order)]))


def _to_the_end(row: Row, behind_ms: int) -> Row:
    """A group of runs; those that last count to the history's end, so much before the moment they were counted to."""
    if row["ended_by"] != OPEN:
        return row
    total, longest = row["total_ms"] - row["partitions"] * behind_ms, row["longest_ms"] - behind_ms
    return dict(row, total_ms=total, longest_ms=longest)


def _reassignments(spans: Sequence[HistorySpan], parts: Sequence[pa.Table], thresholds: Thresholds) -> list[Row]:
    """The slow and open ones, each with how long it ``lasted``."""
    if not parts:
        return []
    ends = {span.cluster_id: span.end for span in spans}
    found = rows_of(slow(pa.concat_tables(parts), thresholds.slow_reassignment))
    return [dict(row, lasted=(row["to_time"] or ends[row["cluster_id"]]) - row["from_time"]) for row in found]


def merged_instants(parts: Sequence[pa.Table], at_least: int) -> pa.Table:
    """The instants of some times, from all buckets, of the times and causes that have at least so many changes."""
    found = BY_INSTANT.of(pa.concat_tables(parts))
    together = Grouping(("cluster_id", "time", "cause"), {"partitions": "sum"}).of(found)
    many = together.filter(pc.greater_equal(together["partitions"], at_least)).drop_columns("partitions")
    return found.join(many, ["cluster_id", "time", "cause"], join_type="left semi", use_threads=False).cast(INSTANTS)
