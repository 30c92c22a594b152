"""The tables that incidents are told from, and how rows of one kind come together. Pure.

What is grouped has the same columns before and after: parts that workers have grouped are grouped again, to the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.fold.fields import Bools, Longs

TIME: Final = pa.timestamp("us", tz="UTC")
_INTS: Final = pa.list_(pa.int32())
_KEY: Final = (
    ("cluster_id", pa.string()),
    ("topic_id", pa.string()),
    ("partition", pa.int32()),
    ("topic", pa.string()),
)
_SPAN: Final = (
    ("from_offset", pa.int64()),
    ("from_time", TIME),
    #: Null: it holds still.
    ("to_offset", pa.int64()),
    ("to_time", TIME),
)

#: Stretches in which something was true of a partition: ``cause``, ``broker`` and ``cause_offset`` of the change that
#: began it, and ``ended_by``: the cause of the change that ended it, or what else did (``kinds.ENDS``).
RUNS: Final = pa.schema(
    [
        *_KEY,
        *_SPAN,
        ("cause", pa.string()),
        ("broker", pa.int32()),
        ("cause_offset", pa.int64()),
        ("ended_by", pa.string()),
    ]
)
#: Elections of a leader that was neither in the ISR nor eligible, and what they may have cost.
RISKY_ELECTIONS: Final = pa.schema(
    [
        *_KEY,
        ("offset", pa.int64()),
        ("time", TIME),
        #: Unclean, or of the last known leader.
        ("kind", pa.string()),
        ("leader", pa.int32()),
        #: The last one under a leader.
        ("last_isr", _INTS),
        #: Its other members, each with the time it had been in the ISR, the longest first; null: there are none.
        ("ahead", pa.list_(pa.struct([("in_isr_ms", pa.int64()), ("broker", pa.int32())]))),
        #: When the new leader left the ISR; null: it never was in it, as far as the history goes.
        ("left_isr", TIME),
        #: When that last leadership ended.
        ("isr_ended", TIME),
        #: How long others could acknowledge writes that the new leader may not have: 0 if it was in the last ISR, null
        #: if that is not known.
        ("exposed_ms", pa.int64()),
    ]
)
#: Every change of replicas, from its first record to its last; the two are one where the replicas were there already.
REASSIGNMENTS: Final = pa.schema(
    [
        *_KEY,
        *_SPAN,
        #: Those at the start.
        ("replicas", _INTS),
        ("adding", _INTS),
        ("removing", _INTS),
        #: Added brokers that were not in the ISR when it ended, or are not now.
        ("waiting_for", _INTS),
        #: ``completed``, ``cancelled``, ``topic_removed`` or ``open``.
        ("outcome", pa.string()),
    ]
)
#: Partitions whose ISR shrank and grew again and again: when first and last, how often in all and, at most, within the
#: window, and which broker came back most often.
FLAPPING: Final = pa.schema(
    [
        *_KEY,
        ("first_offset", pa.int64()),
        ("from_time", TIME),
        ("to_time", TIME),
        ("flaps", pa.int64()),
        ("most", pa.int64()),
        ("broker", pa.int32()),
    ]
)
_COUNTS: Final = tuple(
    (name, pa.int64())
    for name in ("from_offset", "to_offset", "partitions", "leaders_moved", "leaders_lost", "isr_shrunk", "isr_grown")
)
#: Changes by time, cause and broker.
INSTANTS: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("time", TIME),
        ("cause", pa.string()),
        ("broker", pa.int32()),
        ("cause_offset", pa.int64()),
        *_COUNTS,
    ]
)
#: What each broker's event took away.
EFFECTS: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("cause", pa.string()),
        ("broker", pa.int32()),
        ("cause_offset", pa.int64()),
        ("from_time", TIME),
        ("to_time", TIME),
        *_COUNTS,
    ]
)

#: Risky elections by time, kind and leader; ``ahead`` and ``exposed_ms`` are those of the worst one.
ELECTION_GROUPS: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("time", TIME),
        ("kind", pa.string()),
        ("leader", pa.int32()),
        ("from_offset", pa.int64()),
        ("to_offset", pa.int64()),
        ("partitions", pa.int64()),
        ("exposed_ms", pa.int64()),
        RISKY_ELECTIONS.field("ahead"),
        ("topics", pa.list_(pa.string())),
        ("first_partition", pa.string()),
    ]
)

#: The tables that are written as a whole.
TABLES: Final = {
    "leaderless": RUNS,
    "under_replicated": RUNS,
    "under_min_isr": RUNS,
    "risky_elections": RISKY_ELECTIONS,
    "reassignments": REASSIGNMENTS,
    "isr_flapping": FLAPPING,
    "instants": INSTANTS,
}


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows that agree in the keys become one.

    Attributes:
        hows: by column what becomes of it: ``min``, ``max``, ``sum``, or ``first`` by ``first_by``, then by itself.
    """

    keys: Sequence[str]
    hows: Mapping[str, str]
    first_by: str | None = None

    def of(self, table: pa.Table) -> pa.Table:
        """The grouped rows, with the keys first."""
        if self.first_by is not None:
            firsts = [name for name, how in self.hows.items() if how == "first"]
            table = table.sort_by([(name, "ascending") for name in (self.first_by, *firsts)])
        found = table.group_by(list(self.keys), use_threads=False).aggregate(list(self.hows.items()))
        names = [*self.keys, *(f"{name}_{how}" for name, how in self.hows.items())]
        return found.select(names).rename_columns([*self.keys, *self.hows])


_SUMMED: Final = {
    "from_offset": "min",
    "to_offset": "max",
    **dict.fromkeys(("partitions", "leaders_moved", "leaders_lost", "isr_shrunk", "isr_grown"), "sum"),
}
BY_INSTANT: Final = Grouping(("cluster_id", "time", "cause", "broker", "cause_offset"), _SUMMED)
BY_EFFECT: Final = Grouping(
    ("cluster_id", "cause", "broker", "cause_offset"), {"from_time": "min", "to_time": "max", **_SUMMED}
)
#: Partitions that took a broker out of the ELR as it registered again.
BY_UNCLEAN_STOP: Final = Grouping(("cluster_id", "broker", "time"), {"from_offset": "min", "partitions": "sum"})
#: Runs of one condition by what began and what ended them, with the time they add up to.
BY_CAUSE: Final = Grouping(
    ("cluster_id", "cause", "broker", "cause_offset", "ended_by"),
    {
        "partitions": "sum",
        "from_offset": "min",
        "from_time": "min",
        "to_offset": "max",
        "to_time": "max",
        "total_ms": "sum",
        "longest_ms": "max",
        "first_partition": "first",
    },
    first_by="from_offset",
)
#: Partitions whose ISR flaps, by the broker that came back most often; the first one is that which flapped most.
BY_FLAPPING: Final = Grouping(
    ("cluster_id", "broker"),
    {
        "partitions": "sum",
        "from_offset": "min",
        "from_time": "min",
        "to_time": "max",
        "flaps": "sum",
        "most": "max",
        "least_first": "min",
        "first_partition": "first",
    },
    first_by="least_first",
)
BY_OUTCOME: Final = Grouping(("cluster_id", "outcome"), {"count": "sum"})
#: The stretch of each cluster's history.
BY_CLUSTER: Final = Grouping(
    ("cluster_id",),
    {"from_offset": "min", "to_offset": "max", "from_time": "min", "to_time": "max", "partitions": "sum"},
)


def table_of(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """A table of these columns, with the schema's types and order."""
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def times(us: Longs, is_null: Bools | None = None) -> pa.Array:
    """Microseconds since 1970 as a column of times."""
    return pa.array(us, pa.int64(), mask=is_null).cast(TIME)


def lasted_ms(table: pa.Table, now_us: int | None = None) -> pa.ChunkedArray:
    """By row from ``from_time`` to ``to_time`` in whole milliseconds.

    Args:
        now_us: until when counts what lasts; None: it is null.
    """
    starts, ends = (pc.divide(table[name].cast(pa.int64()), 1000) for name in ("from_time", "to_time"))
    return pc.subtract(ends if now_us is None else pc.fill_null(ends, now_us // 1000), starts)


def partition_names(table: pa.Table) -> pa.ChunkedArray:
    """The partitions of the rows, for people."""
    return pc.binary_join_element_wise(table["topic"], table["partition"].cast(pa.string()), "-")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a small table; times keep their zone."""
    return [dict(row) for row in table.to_pylist()]
