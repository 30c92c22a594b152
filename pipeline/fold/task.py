"""One task: some batches in a row, folded into elements, and the records that are no mass records as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.metadata_log.batches.runs import Run
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
)
from quorate.pipeline.fold.elements import Cuts, Elements, fold_rows
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.rows import MassRows, RowTable
from quorate.pipeline.fold.timeline import BASE_OFFSET, MARKERS, NEVER, NEVER_YET, Located, Transactions

#: Records without any state.
_STATELESS: Final = (NoOpRecord, LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord)


@dataclass(frozen=True, slots=True)
class FoldedTask:
    """The result of a task."""

    elements: Elements
    #: In order, transaction markers among them.
    others: list[Located]


class TaskFold:
    """Folds the records of one task, in order but for mass records, which may come in any.

    Args:
        moments: the offsets at which a state is wanted, in any order.
        is_base: the records are a checkpoint's: they come before every offset of a log.
    """

    def __init__(self, moments: Iterable[int] = (), *, is_base: bool = False) -> None:
        self._moments = frozenset(moments)
        self._shift = BASE_OFFSET if is_base else 0
        self._rows = MassRows()
        self._others: list[Located] = []

    def add_run(self, offsets: Longs, run: Run) -> None:
        """Mass records of one shape, and the offset of each."""
        self._rows.add_run(offsets + self._shift if self._shift else offsets, run)

    def add_record(self, offset: int, record: Record) -> None:
        """Any other record, or a mass record by itself."""
        offset += self._shift
        if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
            self._rows.add_record(offset, record)
        elif not isinstance(record, _STATELESS):
            self._others.append(Located(offset, record))

    def finish(self) -> FoldedTask:
        """The task's elements and other records."""
        rows, others = self._rows.close(), self._others
        transactions, opened = _within(others)
        rows = _without_aborted(rows, transactions)
        everywhere = set(self._moments)
        if opened is not None:
            everywhere.add(opened)
        everywhere.update(
            int(begin)
            for moment in self._moments
            for begin, end in zip(transactions.begins, transactions.ends, strict=True)
            if begin < moment <= end
        )
        of_topics = _topic_cuts(others, transactions, everywhere)
        cuts = Cuts(np.array(sorted(everywhere), np.int64), of_topics)
        return FoldedTask(fold_rows(rows, cuts), others)


def _within(others: list[Located]) -> tuple[Transactions, int | None]:
    """The transactions whose end a task sees, and where one begins whose end it does not see.

    Whether the markers follow each other as they should is found out where all of them are known.
    """
    found: list[tuple[int, int, bool]] = []
    begin: int | None = NEVER_YET  # what comes before the first marker may be in a transaction
    for offset, record in others:
        if not isinstance(record, MARKERS):
            continue
        if isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
            if begin is not None:
                found.append((begin, offset, isinstance(record, AbortTransactionRecord)))
            begin = None
        else:
            begin = offset
    begins, ends, aborted = zip(*found, strict=True) if found else ((), (), ())
    transactions = Transactions(np.array(begins, np.int64), np.array(ends, np.int64), np.array(aborted, np.bool_))
    return transactions, None if begin in (None, NEVER_YET) else begin


def _without_aborted(rows: RowTable, transactions: Transactions) -> RowTable:
    if not transactions.is_aborted.any():
        return rows
    aborted = transactions.is_aborted
    only = Transactions(transactions.begins[aborted], transactions.ends[aborted], aborted[aborted])
    return rows.where(lambda offsets: only.count_at(offsets, NEVER))


def _topic_cuts(others: list[Located], transactions: Transactions, everywhere: set[int]) -> dict[Uuid, list[int]]:
    """Offsets of removals and clearings by topic; those of topics that the task does not know go to ``everywhere``."""
    names: dict[str, Uuid] = {}
    found: dict[Uuid, list[int]] = {}
    for offset, record in transactions.counted(others, NEVER):
        if isinstance(record, TopicRecord):
            names[record.name] = record.topic_id
        elif isinstance(record, RemoveTopicRecord):
            # What comes behind it is of another topic, or must not be: it is not to hide in an element from before.
            found.setdefault(record.topic_id, []).append(offset)
        elif isinstance(record, ClearElrRecord):
            topic_id = names.get(record.topic_name)
            if topic_id is None:
                everywhere.add(offset)
            else:
                found.setdefault(topic_id, []).append(offset)
    return found
