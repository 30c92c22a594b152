"""Series for the page: counts over time, thinned to what a picture can show, and the leaders of a few partitions. Pure.

Each bucket of topics gives steps: by how much a number changes at a time. Stretches of time are as many as a picture is
wide; what is in one of them comes together and is summed up, and the stretches of one series are put in a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.fold.fields import Bools, Longs
from quorate.pipeline.incidents.partitions.changes import Changes
from quorate.pipeline.incidents.partitions.intervals import edges, leaderless
from quorate.pipeline.incidents.partitions.versions import NEVER, PartitionVersions
from quorate.pipeline.incidents.tables import TIME, Grouping, table_of, times
from quorate.snapshots.incidents.findings import HistorySpan, Row

#: More points than a picture is wide tell nothing.
POINTS_MAX: Final = 2_000
#: Conditions whose runs are counted: tables of runs.
HEALTH: Final = ("leaderless", "under_replicated", "under_min_isr")
_LED: Final = "led"
_PARTITIONS_SHOWN: Final = 40

#: By how much what is counted changes: runs of a condition, or partitions that a broker leads.
STEPS: Final = pa.schema(
    [("cluster_id", pa.string()), ("name", pa.string()), ("broker", pa.int32()), ("time", TIME), ("step", pa.int64())]
)
_BY_STEP: Final = Grouping(("cluster_id", "name", "broker", "time"), {"step": "sum"})
#: What a stretch of time does to one count: by how much it was higher at most, and when last, and by how much it is
#: higher at the last time at which it changes.
_STRETCHES: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("name", pa.string()),
        ("broker", pa.int32()),
        ("stretch", pa.int64()),
        ("at", TIME),
        ("most", pa.int64()),
        ("until", TIME),
        ("net", pa.int64()),
    ]
)
#: Who led the partitions that were without a leader for longest; -1: nobody.
LEADERS: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("without_ms", pa.int64()),
        ("time", TIME),
        ("leader", pa.int32()),
    ]
)

#: A number of things from each time on.
Steps = list[tuple[datetime, int]]


@dataclass(slots=True)
class ClusterSeries:
    """The pictures of one cluster."""

    #: By name of what is counted: leaderless, under_replicated, under_min_isr.
    health: dict[str, Steps] = field(default_factory=lambda: {name: [] for name in HEALTH})
    #: By broker: partitions that it leads.
    led: dict[int, Steps] = field(default_factory=dict)
    #: By partition, those that were without a leader for longest first: leaders from each time on, -1 = none.
    leaders: dict[str, Steps] = field(default_factory=dict)


# --- of one bucket -----------------------------------------------------------------------------------


def steps_of(changes: Changes, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The steps of what a bucket's partitions count for: a table of ``STEPS``."""
    parts = [_run_steps(name, tables[name]) for name in HEALTH]
    return _BY_STEP.of(pa.concat_tables([*parts, *_led_steps(changes)])).cast(STEPS)


def _run_steps(name: str, runs: pa.Table) -> pa.Table:
    parts = []
    for time, step in (("from_time", 1), ("to_time", -1)):
        found = runs.filter(runs[time].is_valid())
        columns = {
            "cluster_id": found["cluster_id"],
            "name": pa.array([name]).take(pa.array(np.zeros(len(found), np.int32))),
            "broker": pa.nulls(len(found), pa.int32()),
            "time": found[time],
            "step": pa.array(np.full(len(found), step)),
        }
        parts.append(table_of(columns, STEPS))
    return pa.concat_tables(parts)


def _led_steps(changes: Changes) -> list[pa.Table]:
    """A partition more or less for who leads it from now on, who led it before, and who led what was removed."""
    versions = changes.versions
    taken = np.flatnonzero(versions.is_start | changes.is_moved)
    left = np.flatnonzero(changes.is_moved)
    last = np.flatnonzero(np.append(versions.is_start[1:], True)[: len(versions)] & (versions.gone_us != NEVER))
    return [
        _of_brokers(versions, taken, taken, versions.time_us, 1),
        _of_brokers(versions, left, left - 1, versions.time_us, -1),
        _of_brokers(versions, last, last, versions.gone_us, -1),
    ]


def _of_brokers(versions: PartitionVersions, rows: Longs, led: Longs, time_us: Longs, step: int) -> pa.Table:
    is_led = versions.leader[led] >= 0
    rows, led = rows[is_led], led[is_led]
    columns = {
        "cluster_id": versions.cluster.array(rows),
        "name": pa.array([_LED]).take(pa.array(np.zeros(len(rows), np.int32))),
        "broker": pa.array(versions.leader[led]),
        "time": times(time_us[rows]),
        "step": pa.array(np.full(len(rows), step)),
    }
    return table_of(columns, STEPS)


def leaders_of(changes: Changes, now_us: int) -> pa.Table:
    """Of each cluster the partitions that were without a leader for longest, and their leaders: of ``LEADERS``.

    Args:
        now_us: until when those count that are without one still.
    """
    versions = changes.versions
    first, end = edges(versions.group, leaderless(versions))
    gone = versions.gone_us[first]
    until = np.where(end != NEVER, versions.time_us[end], np.where(gone != NEVER, gone, now_us))
    starts = np.flatnonzero(versions.is_start)
    without = np.zeros(len(starts), np.int64)
    np.add.at(without, versions.group[first], until // 1000 - versions.time_us[first] // 1000)
    concerned = np.unique(versions.group[first])
    rank = np.argsort(np.argsort(np.array(versions.topic_id.names)))
    begin = starts[concerned]
    order = np.lexsort((versions.partition[begin], rank[versions.topic_id.codes[begin]], -without[concerned]))
    shown = np.zeros(len(starts), np.bool_)
    for cluster in np.unique(versions.cluster.codes[begin]).tolist():
        mine = order[versions.cluster.codes[begin[order]] == cluster]
        shown[concerned[mine[:_PARTITIONS_SHOWN]]] = True
    rows = np.flatnonzero(shown[versions.group] & (versions.is_start | changes.is_moved))
    columns = {
        **versions.key(rows),
        "without_ms": pa.array(without[versions.group[rows]]),
        "time": times(versions.time_us[rows]),
        "leader": pa.array(versions.leader[rows]),
    }
    return table_of(columns, LEADERS)


# --- of one stretch of time --------------------------------------------------------------------------


def widths_us(spans: Iterable[HistorySpan]) -> dict[str, int]:
    """By cluster the length of a stretch."""
    return {
        span.cluster_id: max(1, int((span.end - span.begin) / timedelta(microseconds=1)) // POINTS_MAX)
        for span in spans
    }


def stretches_of(steps: pa.Table, widths: Mapping[str, int]) -> Longs:
    """The number of each step's stretch."""
    cluster = steps["cluster_id"].combine_chunks().dictionary_encode()
    width = np.array([widths[name] for name in cluster.dictionary.to_pylist()], np.int64)
    found: Longs = steps["time"].cast(pa.int64()).to_numpy() // width[cluster.indices.to_numpy()]
    return found


def summed_up(steps: pa.Table, widths: Mapping[str, int]) -> pa.Table:
    """All steps of some stretches of time, from all buckets, as one row a stretch and series."""
    steps = _BY_STEP.of(steps)
    # A count of runs that begin and end at one time does not change; a leader's picture shows even that.
    steps = steps.filter(pc.or_(pc.is_valid(steps["broker"]), pc.not_equal(steps["step"], 0)))
    steps = steps.sort_by([(name, "ascending") for name in _BY_STEP.keys]).combine_chunks()
    if not len(steps):
        return _STRETCHES.empty_table()
    stretch = stretches_of(steps, widths)
    starts = np.flatnonzero(_begins(steps, stretch))
    ends = np.append(starts[1:], len(stretch)) - 1
    step = steps["step"].to_numpy()
    total = np.cumsum(step)
    count = total - np.repeat(total[starts] - step[starts], ends - starts + 1)
    most = np.maximum.reduceat(count, starts)
    is_most = count == np.repeat(most, ends - starts + 1)
    last_most = np.maximum.reduceat(np.where(is_most, np.arange(len(count)), -1), starts)
    first = pa.array(starts)
    columns = {
        **{name: steps[name].take(first) for name in ("cluster_id", "name", "broker")},
        "stretch": pa.array(stretch[starts]),
        "at": steps["time"].take(pa.array(last_most)),
        "most": pa.array(most),
        "until": steps["time"].take(pa.array(ends)),
        "net": pa.array(count[ends]),
    }
    return table_of(columns, _STRETCHES)


def _begins(steps: pa.Table, stretch: Longs) -> Bools:
    """Whether another series or stretch begins with each row."""
    found = np.append(True, stretch[1:] != stretch[:-1])
    for name in ("cluster_id", "name", "broker"):
        codes = steps[name].dictionary_encode("encode").combine_chunks().indices.to_numpy()
        found[1:] |= codes[1:] != codes[:-1]
    return found


# --- of everything -----------------------------------------------------------------------------------


def series(spans: Sequence[HistorySpan], stretches: Sequence[Row], leaders: Sequence[Row]) -> dict[str, ClusterSeries]:
    """The pictures of each cluster, of the rows of ``summed_up`` and of ``leaders_of``."""
    found = {span.cluster_id: ClusterSeries() for span in spans}
    ordered = sorted(stretches, key=lambda row: (*_series(row), row["stretch"]))
    for (cluster_id, name, broker), rows in groupby(ordered, key=_series):
        if name == _LED:
            found[cluster_id].led[broker] = _counts(rows)
        else:
            found[cluster_id].health[name] = _worst(rows)
    for cluster_id, mine in found.items():
        mine.leaders = _shown([row for row in leaders if row["cluster_id"] == cluster_id])
    return found


def _series(row: Row) -> tuple[str, str, int]:
    return row["cluster_id"], row["name"], -1 if row["broker"] is None else row["broker"]


def _worst(rows: Iterable[Row]) -> Steps:
    """The highest count of each stretch of time, and the last one, for it holds until the next."""
    steps: Steps = []
    count = 0
    for row in rows:
        steps += sorted({(row["at"], count + row["most"]), (row["until"], count + row["net"])})
        count += row["net"]
    return steps


def _counts(rows: Iterable[Row]) -> Steps:
    steps: Steps = []
    count = 0
    for row in rows:
        count += row["net"]
        steps.append((row["until"], count))
    return steps


def _shown(rows: Sequence[Row]) -> dict[str, Steps]:
    ranked = sorted({(-row["without_ms"], row["topic_id"], row["partition"]) for row in rows})[:_PARTITIONS_SHOWN]
    kept = {(topic_id, partition) for _, topic_id, partition in ranked}
    found: dict[str, Steps] = {}
    for row in sorted(rows, key=lambda row: (-row["without_ms"], _name(row), row["time"])):
        if (row["topic_id"], row["partition"]) in kept:
            found.setdefault(_name(row), []).append((row["time"], row["leader"]))
    return found


def _name(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"
