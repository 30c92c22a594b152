"""An audit's findings in one bucket at each moment: the sum of its leaves, and the problems in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import pyarrow as pa

from quorate.pipeline.fold.compose import compose
from quorate.pipeline.fold.elements import Elements, empty_elements
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.invariants import broken, fallen_epochs
from quorate.pipeline.fold.leaves import topic_leaves
from quorate.pipeline.fold.state import catalogue_leaves, replayed
from quorate.pipeline.fold.timeline import Located, Topics, Transactions
from quorate.snapshots.digest import DIGEST_BYTES

#: Of one kind at one moment in one bucket; one is enough to fail.
_PROBLEMS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that must not be. Offsets are of the record that made it so."""

    offset: int
    problem: str
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class FoldFindings:
    """Of one bucket, or of the catalogue, at one moment."""

    moment: int
    leaves: int
    partitions: int
    topics: int
    problems: list[Problem]


def bucket_findings(elements: Elements, records: list[Located], moments: Sequence[int]) -> Iterator[FoldFindings]:
    """The findings at each moment, in order; the last one that can be told where a record is refused."""
    before = empty_elements()

    def find(moment: int) -> FoldFindings:
        nonlocal before
        transactions = Transactions.of(located for located in records if located.offset < moment)
        topics = Topics(transactions.counted(records, moment))
        state = compose(elements, topics, transactions, moment)
        names = {topic_id: life.name for topic_id, life in topics.alive().items()}
        problems = list(_problems(before, state, names))
        before = state
        return FoldFindings(moment, topic_leaves(state, names), len(state), len(names), problems)

    end = max([*(located.offset for located in records), int(elements.last_offset.max(initial=-1))])
    return _at_moments(moments, end, find)


def _problems(before: Elements, state: Elements, names: dict[bytes, str]) -> Iterator[Problem]:
    for rule, rows in broken(state):
        yield from _named(rule, rows, state, names)
    yield from _named("an epoch is lower than it was", fallen_epochs(before, state), state, names)


def _named(rule: str, rows: Longs, state: Elements, names: dict[bytes, str]) -> Iterator[Problem]:
    for row in rows[:_PROBLEMS_MAX].tolist():
        topic = names[state.topic_ids[row].tobytes()]
        yield Problem(int(state.last_offset[row]), rule, topic, int(state.partition_ids[row]))


def catalogue_findings(records: list[Located], moments: Sequence[int]) -> Iterator[FoldFindings]:
    """The same of all that is no partition."""

    def find(moment: int) -> FoldFindings:
        transactions = Transactions.of(located for located in records if located.offset < moment)
        return FoldFindings(moment, catalogue_leaves(replayed(transactions.counted(records, moment))), 0, 0, [])

    return _at_moments(moments, max((located.offset for located in records), default=-1), find)


def _at_moments(moments: Sequence[int], end: int, find: Callable[[int], FoldFindings]) -> Iterator[FoldFindings]:
    """The findings at each moment; a moment before which nothing happened since the last one has those of that.

    Args:
        end: offset of the last record. find: called in order.
    """
    last: FoldFindings | None = None
    for moment in sorted(moments):
        if last is not None and end < last.moment:
            last = replace(last, moment=moment)
        else:
            try:
                last = find(moment)
            except FoldRefused as error:
                yield FoldFindings(moment, 0, 0, 0, [Problem(error.offset, error.reason)])
                return
        yield last


#: Columns of a table of findings.
COLUMNS: Final = "moment long, leaves binary, partitions long, topics long, problems string, counts string"
_SCHEMA: Final = pa.schema(
    [
        ("moment", pa.int64()),
        ("leaves", pa.binary()),
        ("partitions", pa.int64()),
        ("topics", pa.int64()),
        ("problems", pa.string()),
        ("counts", pa.string()),
    ]
)


def findings_table(findings: Iterator[FoldFindings], counts: str | None = None) -> pa.Table:
    """Findings as rows of ``COLUMNS``; ``counts`` is handed on."""
    rows = [
        {
            "moment": found.moment,
            "leaves": found.leaves.to_bytes(DIGEST_BYTES, "big"),
            "partitions": found.partitions,
            "topics": found.topics,
            "problems": json.dumps([asdict(problem) for problem in found.problems]),
            "counts": counts,
        }
        for found in findings
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)
