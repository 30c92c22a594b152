"""Small tables of versions made by hand, for tests of what is found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from quorate.pipeline.incidents.partitions.bucket import Known, tables_of
from quorate.pipeline.incidents.partitions.changes import NAMES, Changes
from quorate.pipeline.incidents.partitions.versions import PartitionVersions
from quorate.pipeline.tables.history_schema import PARTITION_VERSIONS
from quorate.snapshots.incidents.brokers import BrokerEvent
from quorate.snapshots.incidents.min_isr import ConfigSpan, min_isr_steps
from quorate.snapshots.incidents.thresholds import Thresholds

SECOND = 1_000_000
CLUSTER = "c"
#: What a partition is at first, unless a test says otherwise.
_BORN: dict[str, Any] = {
    "leader": 1, "leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0,
    "replicas": [1, 2, 3], "isr": [1, 2, 3], "adding_replicas": [], "removing_replicas": [],
    "eligible_leader_replicas": None, "last_known_elr": None, "directories": [],
}  # fmt: skip


def partition(
    *changes: tuple[int, Mapping[str, Any]], topic: str = "t", number: int = 0, gone: int | None = None
) -> list[dict[str, Any]]:
    """The versions of one partition: born with the first change, at each offset what changes there.

    Offsets are seconds too. A transaction's changes have a ``record_offset`` of their own. ``gone``: the topic's end.
    """
    state = dict(_BORN)
    rows = []
    for place, (offset, change) in enumerate(changes):
        state = {**state, **change}
        rows.append(
            {
                "cluster_id": CLUSTER, "topic_id": f"id-of-{topic}", "topic": topic, "partition": number,
                "record_offset": offset, "change": "changed" if place else "created", **state,
                "valid_from_offset": offset, "valid_from": offset * SECOND, "removed": False,
            }
        )  # fmt: skip
        state.pop("record_offset", None)
        state.pop("change", None)
    ends = [(row["valid_from_offset"], row["valid_from"]) for row in rows[1:]]
    last: tuple[int | None, int | None] = (None, None) if gone is None else (gone, gone * SECOND)
    for row, end in zip(rows, [*ends, last], strict=True):
        row.update(zip(("valid_to_offset", "valid_to"), end, strict=True))
    rows[-1]["removed"] = gone is not None
    return rows


def versions_of(*partitions: Sequence[Mapping[str, Any]]) -> PartitionVersions:
    """The versions of these partitions, read from the table backwards."""
    rows = [row for versions in partitions for row in versions][::-1]
    columns = {name: [row[name] for row in rows] for name in PARTITION_VERSIONS.names}
    return PartitionVersions.of(
        pa.table({name: pa.array(column) for name, column in columns.items()}).cast(PARTITION_VERSIONS)
    )


def known(
    events: Sequence[BrokerEvent] = (), min_isr: Sequence[ConfigSpan] = (), thresholds: Thresholds | None = None
) -> Known:
    """What is known beside partitions; nothing."""
    thresholds = thresholds or Thresholds()
    return Known.of(list(events), min_isr_steps(min_isr, thresholds.min_isr), thresholds, 1_000 * SECOND)


def changes_of(versions: PartitionVersions, of: Known | None = None) -> Changes:
    return (of or known()).changes(versions)


def causes_of(*partitions: Sequence[Mapping[str, Any]], of: Known | None = None) -> list[tuple[str, int, int]]:
    """Cause, broker and broker's event of every version but the first of each partition."""
    found = changes_of(versions_of(*partitions), of)
    rows = zip(found.cause.tolist(), found.subject.tolist(), found.cause_offset.tolist(), strict=True)
    return [
        (NAMES[cause], broker, offset)
        for (cause, broker, offset), is_start in zip(rows, found.versions.is_start.tolist(), strict=True)
        if not is_start
    ]


def found_in(name: str, *partitions: Sequence[Mapping[str, Any]], of: Known | None = None) -> list[dict[str, Any]]:
    """The rows of one of the tables that are found in these partitions; times in seconds since 1970."""
    of = of or known()
    rows = tables_of(changes_of(versions_of(*partitions), of), of)[name].to_pylist()
    return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return int(value.timestamp()) if hasattr(value, "timestamp") else value
