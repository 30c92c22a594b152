"""Counts of the changes of some partitions, by instant, by broker's event, by cluster. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.fold.fields import Ints, Longs
from quorate.pipeline.incidents.partitions.changes import CODES, Changes, cause_names
from quorate.pipeline.incidents.partitions.lists import NOBODY
from quorate.pipeline.incidents.partitions.versions import NEVER, PartitionVersions
from quorate.pipeline.incidents.tables import (
    BY_CAUSE,
    BY_CLUSTER,
    BY_EFFECT,
    BY_FLAPPING,
    BY_INSTANT,
    BY_OUTCOME,
    BY_UNCLEAN_STOP,
    EFFECTS,
    INSTANTS,
    Grouping,
    lasted_ms,
    partition_names,
    table_of,
    times,
)
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.causes import NONE


def instants(changes: Changes) -> pa.Table:
    """Changes by time, cause and broker, and removals of topics by time: a table of ``INSTANTS``.

    The time of a batch is that of all its records, so a batch's changes are never torn apart.
    """
    versions = changes.versions
    broker = np.where(changes.subject == NOBODY, changes.gained, changes.subject)
    changed = _grouped(BY_INSTANT, changes, np.arange(len(versions)), broker, {"time": versions.time_us})
    return pa.concat_tables([table_of(changed, INSTANTS), _removals(versions)])


def effects(changes: Changes) -> pa.Table:
    """The losses by each broker's event: a table of ``EFFECTS``."""
    rows = np.flatnonzero(changes.cause_offset != NONE)
    spans = dict.fromkeys(("from_time", "to_time"), changes.versions.time_us)
    return table_of(_grouped(BY_EFFECT, changes, rows, changes.subject, spans), EFFECTS)


def unclean_stops(changes: Changes) -> pa.Table:
    """Partitions that took a broker out of the ELR as it registered again, by broker and time."""
    versions, rows = changes.versions, np.flatnonzero(changes.cause == CODES[kinds.UNCLEAN_STOP])
    return BY_UNCLEAN_STOP.of(
        pa.table(
            {
                "cluster_id": versions.cluster.array(rows).cast(pa.string()),
                "broker": pa.array(changes.dropped[rows]),
                "time": times(versions.time_us[rows]),
                "from_offset": pa.array(versions.offset[rows]),
                "partitions": _ones(len(rows)),
            }
        )
    )


def spans(versions: PartitionVersions) -> pa.Table:
    """First and last offset and time of each cluster, and how many partitions it ever had."""
    clusters = versions.cluster.array(np.arange(len(versions))).cast(pa.string())
    return BY_CLUSTER.of(
        pa.table(
            {
                "cluster_id": clusters,
                "from_offset": pa.array(versions.offset),
                "to_offset": pa.array(np.maximum(versions.offset, versions.gone_offset)),
                "from_time": times(versions.time_us),
                "to_time": times(np.maximum(versions.time_us, versions.gone_us)),
                "partitions": pa.array(versions.is_start.astype(np.int64)),
            }
        )
    )


def grouped_runs(runs: pa.Table, now_us: int) -> pa.Table:
    """Runs of one condition by what began and what ended them, with the time they add up to.

    Args:
        now_us: until when those count that last still.
    """
    lasted = lasted_ms(runs, now_us)
    columns = {"partitions": _ones(len(runs)), "total_ms": lasted, "longest_ms": lasted}
    for name, column in {**columns, "first_partition": partition_names(runs)}.items():
        runs = runs.append_column(name, column)
    return BY_CAUSE.of(runs)


def grouped_flapping(flapping: pa.Table) -> pa.Table:
    """Partitions whose ISR flaps, by the broker that came back most often."""
    columns = {
        "partitions": _ones(len(flapping)),
        "from_offset": flapping["first_offset"],
        "least_first": pc.negate(flapping["most"]),
        "first_partition": partition_names(flapping),
    }
    for name, column in columns.items():
        flapping = flapping.append_column(name, column)
    return BY_FLAPPING.of(flapping)


def outcomes(reassignments: pa.Table) -> pa.Table:
    """The number of reassignments by the way in which they ended."""
    return BY_OUTCOME.of(reassignments.append_column("count", _ones(len(reassignments))))


def _grouped(
    by: Grouping, changes: Changes, rows: Longs, broker: Ints, further: dict[str, Longs]
) -> dict[str, pa.Array]:
    """These changes counted; texts are numbers until few rows are left."""
    offset, is_moved = pa.array(changes.versions.offset[rows]), changes.is_moved[rows]
    grouped = by.of(
        pa.table(
            {
                "cluster_id": pa.array(changes.versions.cluster.codes[rows]),
                "cause": pa.array(changes.cause[rows]),
                "broker": pa.array(broker[rows]),
                "cause_offset": pa.array(changes.cause_offset[rows]),
                **{name: pa.array(values[rows]) for name, values in further.items()},
                "from_offset": offset,
                "to_offset": offset,
                "partitions": _ones(len(rows)),
                "leaders_moved": pa.array(is_moved),
                "leaders_lost": pa.array(is_moved & (changes.versions.leader[rows] < 0)),
                "isr_shrunk": pa.array(changes.shrank[rows]),
                "isr_grown": pa.array(changes.grew[rows]),
            }
        )
    )
    broker, cause_offset = (grouped[name].to_numpy() for name in ("broker", "cause_offset"))
    clusters = pa.array(changes.versions.cluster.names, pa.string())
    return {
        **{name: grouped[name] for name in grouped.column_names},
        **{name: times(grouped[name].to_numpy()) for name in further},
        "cluster_id": pa.DictionaryArray.from_arrays(grouped["cluster_id"].to_numpy(), clusters),
        "cause": cause_names(grouped["cause"].to_numpy()),
        "broker": pa.array(broker, mask=broker == NOBODY),
        "cause_offset": pa.array(cause_offset, mask=cause_offset == NONE),
    }


def _removals(versions: PartitionVersions) -> pa.Table:
    """Removed partitions by time; what else is counted is of changes."""
    rows = np.flatnonzero(versions.is_start & (versions.gone_offset != NEVER))
    gone = pa.array(versions.gone_offset[rows])
    columns = {
        **{name: pa.nulls(len(rows), INSTANTS.field(name).type) for name in INSTANTS.names},
        "cluster_id": versions.cluster.array(rows),
        "time": times(versions.gone_us[rows]),
        "cause": pa.array([kinds.REMOVED] * len(rows), pa.string()),
        "from_offset": gone,
        "to_offset": gone,
        "partitions": _ones(len(rows)),
    }
    return BY_INSTANT.of(table_of(columns, INSTANTS)).cast(INSTANTS)


def _ones(count: int) -> pa.Array:
    return pa.array(np.ones(count, np.int64))
