"""The first difference between two states: what a failing audit reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.hidden_values import IsSecret, shown_data
from quorate.metadata_log.records.json_form import json_type
from quorate.metadata_log.records.records import Record
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.fold.catalogue import Catalogue
from quorate.pipeline.fold.cells import join, state_cell
from quorate.pipeline.fold.compose import compose
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.fields import LISTS, Longs
from quorate.pipeline.fold.findings import Problem
from quorate.pipeline.fold.grouping import ids_by_code, topic_codes
from quorate.pipeline.fold.reading import ReadCounts
from quorate.pipeline.fold.state import FoldedState, replayed
from quorate.pipeline.fold.timeline import Located, Topics, Transactions
from quorate.pipeline.jobs.folding import FoldPlan, fold
from quorate.pipeline.spark.worker_use import WorkerUse
from quorate.snapshots.digest import canonical_value

_SCALARS: Final = ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")


def folded_state(spark: SparkSession, plan: FoldPlan, moment: int) -> FoldedState:
    """The whole state at a moment, brought to the driver: some 150 bytes a partition."""

    def of_bucket(elements: Elements, records: list[Located]) -> pa.Table:
        transactions = Transactions.of(located for located in records if located.offset < moment)
        topics = Topics(transactions.counted(records, moment))
        return pa.table({"cell": [state_cell(compose(elements, topics, transactions, moment), [])]})

    def of_others(records: list[Located], _: list[ReadCounts]) -> pa.Table:
        transactions = Transactions.of(located for located in records if located.offset < moment)
        return pa.table({"cell": [state_cell(None, transactions.counted(records, moment))]})

    rows = fold(
        spark, replace(plan, moments=(moment,)), of_bucket, of_others, "cell binary", WorkerUse(spark)
    ).collect()
    partitions, others = join(bytes(row.cell) for row in rows)
    return FoldedState(partitions, replayed(others))


def first_difference(ours: FoldedState, theirs: FoldedState, moment: int, whose: str, is_secret: IsSecret) -> Problem:
    """The difference that was changed first in the log; one that is only in the other state was changed before the
    moment. Secrets in it are hidden.
    """
    entries = _entries(ours.catalogue, theirs.catalogue, moment, whose, is_secret)
    found = chain(_partitions(ours, theirs, moment, whose), entries)
    unknown = Problem(moment, f"the digest is not that of {whose}, though no entry differs")
    return min(found, key=lambda problem: problem.offset, default=unknown)


def _partitions(ours: FoldedState, theirs: FoldedState, moment: int, whose: str) -> Iterator[Problem]:
    """Topic by topic: as columns two states of a million partitions are small, as Python's objects they are not."""
    names = {topic_id: topic.name for state in (theirs, ours) for topic_id, topic in state.catalogue.topics.items()}
    mine, other = _topics(ours.partitions), _topics(theirs.partitions)
    nothing = np.empty(0, np.int64)
    for topic_id in mine.keys() | other.keys():
        here = _rows(ours.partitions.take(mine.get(topic_id, nothing)))
        there = _rows(theirs.partitions.take(other.get(topic_id, nothing)))
        for partition in here.keys() | there.keys():
            row = here.get(partition)
            fields = _differing(row, there.get(partition))
            if fields:
                offset = row["last_offset"] if row else moment
                yield Problem(offset, f"not as in {whose}: {fields}", names.get(topic_id), partition)


def _topics(state: Elements) -> dict[Uuid, Longs]:
    """The rows of each topic's partitions."""
    numbers = topic_codes(state.topic_ids)
    rows = np.argsort(numbers, kind="stable")
    parts = np.split(rows, np.cumsum(np.bincount(numbers))[:-1]) if len(rows) else []
    return dict(zip(ids_by_code(state.topic_ids, numbers), parts, strict=True))


def _rows(state: Elements) -> dict[int, dict[str, Any]]:
    """The partitions of one topic."""
    columns = {name: getattr(state, name).tolist() for name in (*_SCALARS, "last_offset")}
    columns |= {name: [_set(name, value) for value in state.lists[name].to_pylist()] for name in LISTS}
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return dict(zip(state.partition_ids.tolist(), rows, strict=True))


def _set(name: str, value: Sequence[Any]) -> Any:
    return list(value) if name in ("isr", "replicas", "directories") else sorted(value)


def _differing(mine: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    if mine is None:
        return "it is not in the folded state"
    if other is None:
        return "it is in the folded state only"
    names = [name for name in (*_SCALARS, *LISTS) if mine[name] != other[name]]
    return ", ".join(f"{name} is {mine[name]}, there {other[name]}" for name in names)


def _entries(ours: Catalogue, theirs: Catalogue, moment: int, whose: str, is_secret: IsSecret) -> list[Problem]:
    mine, other = ({canonical_value(record): record for record in _all(state)} for state in (ours, theirs))
    lacking = [mine[value] for value in mine.keys() - other.keys()]
    added = [other[value] for value in other.keys() - mine.keys()]
    found = [Problem(moment, f"not in {whose}: {_told(record, is_secret)}") for record in lacking]
    return found + [Problem(moment, f"only in {whose}: {_told(record, is_secret)}") for record in added]


def _told(record: Record, is_secret: IsSecret) -> str:
    """A record as `log dump` shows it."""
    data = shown_data(record, SCHEMA_OF_CLASS[type(record)].versions.last, is_secret)
    return f"{json_type(record)} {json.dumps(data, ensure_ascii=False)}"


def _all(state: Catalogue) -> list[Any]:
    return [*state.entries(), *state.topics.values()]
