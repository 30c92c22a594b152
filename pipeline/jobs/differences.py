"""Where two states differ first: what a failing audit says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from metadata_log.ids import Uuid
from pipeline.fold.catalogue import Catalogue
from pipeline.fold.cells import join, state_cell
from pipeline.fold.compose import compose
from pipeline.fold.elements import Elements
from pipeline.fold.fields import LISTS
from pipeline.fold.findings import Problem
from pipeline.fold.reading import ReadCounts
from pipeline.fold.state import FoldedState, replayed
from pipeline.fold.timeline import Located, Topics, Transactions
from pipeline.jobs.folding import FoldPlan, fold
from pipeline.worker_use import WorkerUse
from snapshots.digest import canonical_value

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


def first_difference(ours: FoldedState, theirs: FoldedState, moment: int, whose: str) -> Problem:
    """What differs and was changed first in the log; what is only in the other state was changed before the moment."""
    found = [*_partitions(ours, theirs, moment, whose), *_entries(ours.catalogue, theirs.catalogue, moment, whose)]
    unknown = Problem(moment, f"the digest is not that of {whose}, though no entry differs")
    return min(found, key=lambda problem: problem.offset, default=unknown)


def _partitions(ours: FoldedState, theirs: FoldedState, moment: int, whose: str) -> list[Problem]:
    names = {topic_id: topic.name for state in (theirs, ours) for topic_id, topic in state.catalogue.topics.items()}
    mine, other = _rows(ours.partitions), _rows(theirs.partitions)
    found = []
    for key in mine.keys() | other.keys():
        fields = _differing(mine.get(key), other.get(key))
        if fields:
            row = mine.get(key)
            offset = int(ours.partitions.last_offset[row["row"]]) if row else moment
            topic_id, partition = key
            found.append(Problem(offset, f"not as in {whose}: {fields}", names.get(topic_id), partition))
    return found


def _rows(state: Elements) -> dict[tuple[Uuid, int], dict[str, Any]]:
    columns = {name: getattr(state, name).tolist() for name in _SCALARS}
    columns |= {name: [_set(name, value) for value in state.lists[name].to_pylist()] for name in LISTS}
    columns["row"] = np.arange(len(state)).tolist()
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    ids = zip(map(bytes, state.topic_ids), state.partition_ids.tolist(), strict=True)
    return dict(zip(ids, rows, strict=True))


def _set(name: str, value: Sequence[Any]) -> Any:
    return list(value) if name in ("isr", "replicas", "directories") else sorted(value)


def _differing(mine: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    if mine is None:
        return "it is not in the folded state"
    if other is None:
        return "it is in the folded state only"
    names = [name for name in (*_SCALARS, *LISTS) if mine[name] != other[name]]
    return ", ".join(f"{name} is {mine[name]}, there {other[name]}" for name in names)


def _entries(ours: Catalogue, theirs: Catalogue, moment: int, whose: str) -> list[Problem]:
    mine, other = ({canonical_value(record): record for record in _all(state)} for state in (ours, theirs))
    found = [Problem(moment, f"not in {whose}: {mine[value]}") for value in mine.keys() - other.keys()]
    return found + [Problem(moment, f"only in {whose}: {other[value]}") for value in other.keys() - mine.keys()]


def _all(state: Catalogue) -> list[Any]:
    return [*state.entries(), *state.topics.values()]
