"""The findings, for people and as a document. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from quorate.pipeline.incidents.telling.severity import SEVERITIES, by_severity, severity
from quorate.snapshots.incidents.findings import IncidentFindings, at_or_none
from quorate.snapshots.incidents.telling.incident import Incident, counted, in_words, lasting


def report(
    found: IncidentFindings,
    told: Sequence[Incident],
    limit: int,
    more: str = "--out writes all, --limit shows more",
    nothing: str = "The tables hold no partition: there is no history to look at.",
) -> list[str]:
    """The incidents in lines, by cluster and offset; of each kind the ``limit`` worst, the rest counted.

    Args:
        more: how the rest is to be had. nothing: said where there is no history.
    """
    lines: list[str] = []
    for span in found.spans:
        mine = [incident for incident in told if incident.cluster_id == span.cluster_id]
        lines.append(
            f"Cluster {span.cluster_id}: offsets {span.from_offset} to {span.to_offset},"
            f" {lasting(span.end - span.begin)} from {_time(span.begin)}, {counted(span.partitions, 'partition')}."
        )
        lines += [f"  {_counts(mine)}", *_incident_lines(mine, limit, more)]
        lines += [f"  {line}" for line in _totals(found, span.cluster_id, span.end)]
    return lines or [nothing]


def _counts(mine: Sequence[Incident]) -> str:
    if not mine:
        return "No incidents."
    by_severity = Counter(map(severity, mine))
    counts = ", ".join(f"{by_severity[name]:,} {name}" for name in SEVERITIES)
    return f"{counted(len(mine), 'incident')}: {counts}; {sum(one.is_open for one in mine):,} open."


def _incident_lines(mine: Sequence[Incident], limit: int, more: str) -> list[str]:
    counts = Counter(incident.kind for incident in mine)
    shown, chosen = Counter[str](), set[int]()
    for incident in by_severity(mine):
        shown[incident.kind] += 1
        if shown[incident.kind] <= limit:
            chosen.add(id(incident))
    lines = [
        f"  {one.from_offset:>10}  {_time(one.begin)}  {severity(one)}  {one.kind}: {one.text}"
        for one in mine
        if id(one) in chosen
    ]
    lines += [
        f"  ... and {count - limit:,} more of {kind}, less bad: {more}"
        for kind, count in sorted(counts.items())
        if count > limit
    ]
    return lines


def _totals(found: IncidentFindings, cluster_id: str, end: datetime) -> list[str]:
    """One line for each thing that adds up over the history."""
    lines = []
    for name, rows in (
        ("without a leader", found.leaderless),
        ("under-replicated", found.under_replicated),
        ("with too few in the ISR for acks=all", found.under_min_isr),
    ):
        mine = [row for row in rows if row["cluster_id"] == cluster_id]
        lasted = in_words(sum(row["total_ms"] for row in mine))
        still = sum(row["partitions"] for row in mine if row["ended_by"] == "open")
        runs = counted(sum(row["partitions"] for row in mine), "time")
        until = "together until the history's end" if still else "together"
        lines.append(f"Partitions {name}: {runs}, {lasted} {until}, {still:,} of them still.")
    for one in found.incarnations:
        if one.cluster_id == cluster_id:
            up = at_or_none(one.unfenced_us)
            down = at_or_none(one.down_us) or end
            time = "never unfenced" if up is None else f"up for {lasting(down - up)}"
            lines.append(
                f"Broker {one.broker_id}, registered at offset {one.registered_offset}: {time},"
                f" {one.end.replace('_', ' ')}."
            )
    return lines


def document(found: IncidentFindings, told: Sequence[Incident]) -> dict[str, Any]:
    """Everything that was found, every field always there; times as ISO 8601 in UTC."""
    return {
        "clusters": [_plain(asdict(span)) for span in found.spans],
        "incidents": [_plain(asdict(incident)) | {"severity": severity(incident)} for incident in told],
        "broker_incarnations": [_plain(asdict(one)) for one in found.incarnations],
        "failovers": [_plain(change._asdict()) for change in found.failovers],
        "reassignment_outcomes": [_plain(row) for row in found.reassignment_outcomes],
        "under_replicated": [_plain(row) for row in found.under_replicated],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _time(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
