"""Findings in the partitions of one bucket of topics: tables, and parts to be merged with other buckets'. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.incidents.partitions.changes import Changes
from quorate.pipeline.incidents.partitions.counts import (
    effects,
    grouped_flapping,
    grouped_runs,
    instants,
    outcomes,
    spans,
    unclean_stops,
)
from quorate.pipeline.incidents.partitions.elections import risky_elections
from quorate.pipeline.incidents.partitions.flapping import flapping
from quorate.pipeline.incidents.partitions.intervals import (
    IntervalBounds,
    leaderless,
    runs,
    under_min_isr,
    under_replicated,
)
from quorate.pipeline.incidents.partitions.reassignments import reassignments
from quorate.pipeline.incidents.partitions.series import HEALTH, leaders_of, steps_of
from quorate.pipeline.incidents.partitions.versions import PartitionVersions
from quorate.pipeline.incidents.tables import ELECTION_GROUPS, lasted_ms, rows_of
from quorate.snapshots.incidents.brokers import BrokerEvent
from quorate.snapshots.incidents.causes import BrokerTimeline
from quorate.snapshots.incidents.election_groups import grouped_elections, of_one_election
from quorate.snapshots.incidents.kinds import OPEN
from quorate.snapshots.incidents.min_isr import MinIsrSteps
from quorate.snapshots.incidents.thresholds import ROWS_MAX, Thresholds

#: Longer than anything lasts.
_FOREVER_MS: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a cluster that are needed beside its partitions. Travels to the workers."""

    timeline: BrokerTimeline
    steps: MinIsrSteps
    thresholds: Thresholds
    #: Until when counts what lasts still; later than all records.
    now_us: int

    @classmethod
    def of(cls, events: list[BrokerEvent], steps: MinIsrSteps, thresholds: Thresholds, now_us: int) -> Known:
        """The facts that a bucket is searched with."""
        return cls(BrokerTimeline(events), steps, thresholds, now_us)

    def changes(self, versions: PartitionVersions) -> Changes:
        """The versions' changes, with their causes."""
        return Changes.of(versions, self.timeline, self.thresholds.same_event // timedelta(microseconds=1))


def tables_of(changes: Changes, known: Known) -> dict[str, pa.Table]:
    """The tables of single partitions, by the names of ``tables.TABLES``."""
    versions, moments = changes.versions, IntervalBounds.of(changes)
    return {
        "leaderless": runs(moments, leaderless(versions)),
        "under_replicated": runs(moments, under_replicated(versions)),
        "under_min_isr": under_min_isr(changes, known.steps),
        "risky_elections": risky_elections(changes),
        "reassignments": reassignments(versions),
        "isr_flapping": flapping(changes, known.thresholds.flaps, known.thresholds.flap_window),
    }


def parts_of(changes: Changes, tables: Mapping[str, pa.Table], known: Known) -> dict[str, pa.Table]:
    """The small tables, by the names that ``merging`` knows them by."""
    groups = grouped_elections(map(of_one_election, rows_of(tables["risky_elections"])))
    return {
        "spans": spans(changes.versions),
        "effects": effects(changes),
        "unclean_stops": unclean_stops(changes),
        **{name: grouped_runs(tables[name], known.now_us) for name in HEALTH},
        "elections": pa.Table.from_pylist(groups, ELECTION_GROUPS),
        "outcomes": outcomes(tables["reassignments"]),
        "reassignments": slow(tables["reassignments"], known.thresholds.slow_reassignment),
        "flapping": grouped_flapping(tables["isr_flapping"]),
        "leaders": leaders_of(changes, known.now_us),
    }


def by_time_of(changes: Changes, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that can be as long as the log, and come together by time."""
    return {"instants": instants(changes), "steps": steps_of(changes, tables)}


def slow(table: pa.Table, at_least: timedelta) -> pa.Table:
    """The reassignments that are open, and those that took longer, the longest first, up to a limit."""
    took = lasted_ms(table)
    limit = int(at_least.total_seconds() * 1000)
    wanted = pc.or_(pc.equal(table["outcome"], OPEN), pc.fill_null(pc.greater(took, limit), fill_value=False))
    table = table.append_column("took", pc.fill_null(took, _FOREVER_MS)).filter(wanted)
    order = [("took", "descending"), ("from_offset", "ascending"), ("topic", "ascending"), ("partition", "ascending")]
    return table.sort_by(order).slice(0, ROWS_MAX).drop_columns("took")
