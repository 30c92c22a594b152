"""All incidents as one table, the worst first. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from quorate.pipeline.incidents.tables import TIME
from quorate.pipeline.incidents.telling.severity import by_severity, severity
from quorate.snapshots.incidents.telling.incident import Incident

#: The name of the table, beside ``tables.TABLES``.
NAME: Final = "incidents"
INCIDENTS: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("severity", pa.string()),
        ("kind", pa.string()),
        ("from_offset", pa.int64()),
        ("begin", TIME),
        #: Null: it is open, or has no length.
        ("to_offset", pa.int64()),
        ("end", TIME),
        ("is_open", pa.bool_()),
        ("brokers", pa.list_(pa.int32())),
        ("partitions", pa.int64()),
        ("cause", pa.string()),
        ("cause_offset", pa.int64()),
        ("text", pa.string()),
        #: JSON; what is in it depends on the kind.
        ("details", pa.string()),
    ]
)


def incident_table(told: Sequence[Incident]) -> pa.Table:
    """A row an incident."""
    return pa.Table.from_pylist([_row(incident) for incident in by_severity(told)], INCIDENTS)


def _row(incident: Incident) -> dict[str, Any]:
    row = {name: getattr(incident, name) for name in INCIDENTS.names if name not in ("severity", "details")}
    details = json.dumps(incident.details, ensure_ascii=False, default=_plain)
    return {**row, "brokers": list(incident.brokers), "severity": severity(incident), "details": details}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else list(value)
