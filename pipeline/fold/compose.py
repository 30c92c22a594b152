"""The elements of all tasks composed: the state of every partition at a moment.

All elements of a partition must be given together, in any order; which partitions are given together is free, as long
as a topic's are. So the work is shared out by topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.errors import InvariantViolation
from quorate.metadata_log.ids import DIRECTORY_MIGRATING, Uuid, uuid_text
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.fields import (
    ALL_FIELDS,
    BASE,
    BIT,
    DIRECTORIES,
    DIRECTORY_LIST_TYPE,
    KEEPS_DIRECTORIES,
    LISTS,
    Bools,
    Ints,
    Longs,
    uuid_array,
    uuid_bytes,
)
from quorate.pipeline.fold.grouping import ids_by_code, order_by, partition_codes, topic_codes
from quorate.pipeline.fold.timeline import NEVER, NEVER_YET, Life, Topics, Transactions

_ELR_LISTS: Final = ("eligible_leader_replicas", "last_known_elr")
_PLAIN_LISTS: Final = tuple(name for name in LISTS if name not in (*_ELR_LISTS, DIRECTORIES))
#: Room for an offset beside a topic's number in one int64.
_OFFSET_ROOM: Final = 1 << 44


def compose(elements: Elements, topics: Topics, transactions: Transactions, moment: int) -> Elements:
    """The state at a moment: one element per partition, by topic id and number.

    Args:
        elements: those of some topics, each cut at the moment, at transactions that are open there or end otherwise
            than they began, and at clearings.
        topics: made of the records that count at the moment, at least those of the same topics.

    Raises:
        FoldRefused: the first record of a partition or a topic that is not there.
    """
    rows = np.flatnonzero(transactions.count_at(elements.first_offset, moment))
    if len(rows) and int(elements.last_offset[rows].max()) >= moment:
        raise InvariantViolation(f"an element reaches beyond {moment}: its task was not cut there")
    rows = rows[_living(elements.topic_ids[rows], elements.first_offset[rows], topics)]
    codes = partition_codes(elements.topic_ids[rows], elements.partition_ids[rows])
    order = order_by(codes, elements.first_offset[rows])
    ordered = elements.take(rows[order])
    if not len(ordered):
        return ordered
    sequence = _Sequence.of(ordered, codes[order], moment)
    _require_declared(sequence)
    state = _composed(sequence, _cleared_after(sequence, topics))
    return state.take(_by_id(state))


def _living(topic_ids: ByteColumn, offsets: Longs, topics: Topics) -> Longs:
    """The rows of topics that are there; those of a topic that has been removed since are left out."""
    numbers = topic_codes(topic_ids)
    unknown = Life("", NEVER_YET, NEVER, NEVER)
    lives = [topics.lives.get(topic_id, unknown) for topic_id in ids_by_code(topic_ids, numbers)]
    earlier, created, removed = (
        np.array([getattr(life, name) for life in lives], np.int64)[numbers]
        for name in ("earlier", "created", "removed")
    )
    is_lost = (offsets > removed) | ((offsets > earlier) & (offsets < created))
    if is_lost.any():
        row = int(np.flatnonzero(is_lost)[np.argmin(offsets[is_lost])])
        topic = uuid_text(topic_ids[row].tobytes())
        raise FoldRefused(f"a partition of topic {topic}, which is not there", int(offsets[row]))
    return np.flatnonzero((removed == NEVER) & (offsets > created))


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Elements by partition, and those of one partition in order."""

    elements: Elements
    #: Where each partition's elements begin and end.
    starts: Longs
    ends: Longs
    #: For each element: the offset from which on the next one of its partition holds, or the moment.
    next_offset: Longs
    positions: Longs

    @classmethod
    def of(cls, elements: Elements, codes: Ints, moment: int) -> _Sequence:
        is_start = np.concatenate([[True], codes[1:] != codes[:-1]])
        starts = np.flatnonzero(is_start)
        following = np.append(elements.first_offset[1:], moment)
        next_offset = np.where(np.append(is_start[1:], True), moment, following)
        return cls(elements, starts, np.append(starts[1:], len(codes)), next_offset, np.arange(len(codes)))

    def last_with(self, bit: int) -> Longs:
        """For each partition the last element that has a bit; -1 for none."""
        found: Longs = np.maximum.reduceat(self._where(bit), self.starts)
        return found

    def latest_with(self, bit: int) -> Longs:
        """For each element the last one up to it that has a bit, in its partition or one before."""
        found: Longs = np.maximum.accumulate(self._where(bit))
        return found

    def _where(self, bit: int) -> Longs:
        return np.where(self.elements.has(bit), self.positions, -1)

    def sums_since(self, firsts: Longs, values: Any) -> Ints:
        """For each partition the sum from an element on."""
        sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
        found: Ints = (sums[self.ends] - sums[firsts]).astype(np.int32)
        return found


def _require_declared(sequence: _Sequence) -> None:
    elements = sequence.elements
    firsts = sequence.starts
    unknown = firsts[~elements.has(BASE)[firsts]]
    if len(unknown):
        row = int(unknown[np.argmin(elements.first_offset[unknown])])
        name = f"{uuid_text(elements.topic_ids[row].tobytes())}-{int(elements.partition_ids[row])}"
        raise FoldRefused(f"PartitionChangeRecord: there is no partition {name}", int(elements.first_offset[row]))


def _cleared_after(sequence: _Sequence, topics: Topics) -> Bools:
    """For each element whether its partition's ELRs were cleared before the next one."""
    elements = sequence.elements
    of_all = np.array([offset for offset, topic_id in topics.clearings if topic_id is None], np.int64)
    after_last = np.searchsorted(of_all, elements.last_offset, "right")
    found: Bools = after_last < np.searchsorted(of_all, sequence.next_offset)
    of_topics = [(topic_id, offset) for offset, topic_id in topics.clearings if topic_id is not None]
    if of_topics:
        ranks = {topic_id: rank for rank, topic_id in enumerate(dict.fromkeys(topic_id for topic_id, _ in of_topics))}
        numbers = topic_codes(elements.topic_ids)
        rank = np.array([ranks.get(topic_id, -1) for topic_id in ids_by_code(elements.topic_ids, numbers)], np.int64)[
            numbers
        ]
        rows = np.flatnonzero(rank >= 0)
        keys = np.sort(np.array([ranks[topic_id] * _OFFSET_ROOM + offset for topic_id, offset in of_topics], np.int64))
        base = rank[rows] * _OFFSET_ROOM
        after_last = np.searchsorted(keys, base + elements.last_offset[rows], "right")
        found[rows] |= after_last < np.searchsorted(keys, base + sequence.next_offset[rows])
    return found


def _composed(sequence: _Sequence, cleared_after: Bools) -> Elements:
    elements = sequence.elements
    declared = sequence.last_with(BASE)
    last = {name: sequence.last_with(bit) for name, bit in BIT.items()}
    clearings = np.where(cleared_after, sequence.positions, -1)
    raises_epoch = cleared_after & _holds_elr(sequence, clearings)
    last_clearing = np.maximum.reduceat(clearings, sequence.starts)
    lists = {
        name: elements.lists[name].take(pa.array(last[name]))
        for name in LISTS
        if name not in (*_ELR_LISTS, DIRECTORIES)
    }
    for name in _ELR_LISTS:
        lists[name] = _kept_where(elements.lists[name], last[name], last[name] > last_clearing)
    lists[DIRECTORIES] = _directories(sequence, last[DIRECTORIES], lists["replicas"])
    count = len(sequence.starts)
    return Elements(
        topic_ids=elements.topic_ids[sequence.starts],
        partition_ids=elements.partition_ids[sequence.starts],
        flags=np.full(count, ALL_FIELDS | BASE, np.uint16),
        first_offset=elements.first_offset[declared],
        last_offset=elements.last_offset[sequence.ends - 1],
        leader=elements.leader[last["leader"]],
        leader_recovery_state=elements.leader_recovery_state[last["leader_recovery_state"]],
        leader_epoch=elements.leader_epoch[declared] + sequence.sums_since(declared, elements.leader_changes),
        partition_epoch=elements.partition_epoch[declared]
        + sequence.sums_since(declared, elements.changes)
        + sequence.sums_since(declared, raises_epoch),
        changes=np.zeros(count, np.int32),
        leader_changes=np.zeros(count, np.int32),
        lists=lists,
    )


def _holds_elr(sequence: _Sequence, clearings: Longs) -> Bools:
    """For each element whether one of the ELRs is not empty behind it."""
    earlier_clearing = np.concatenate([[-1], np.maximum.accumulate(clearings)[:-1]])
    found = np.zeros(len(clearings), np.bool_)
    for name in _ELR_LISTS:
        latest = sequence.latest_with(BIT[name])
        found |= (_lengths(sequence.elements.lists[name])[latest] > 0) & (latest > earlier_clearing)
    return found


def _kept_where(column: pa.Array, positions: Longs, is_kept: Bools) -> pa.Array:
    """The lists at some positions, empty where they are not kept."""
    empty = pa.array([[]], column.type)
    return pa.concat_arrays([column, empty]).take(pa.array(np.where(is_kept, positions, len(column))))


def _lengths(column: pa.Array) -> Longs:
    found: Longs = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    return found


# --- directories -------------------------------------------------------------------------------------


def _directories(sequence: _Sequence, named: Longs, replicas: pa.Array) -> pa.Array:
    """Each partition's directories: as named last, MIGRATING where none are, kept ones where only replicas changed."""
    elements = sequence.elements
    kept = sequence.last_with(KEEPS_DIRECTORIES)
    found = _filled(elements.lists[DIRECTORIES].take(pa.array(named)), replicas)
    odd = np.flatnonzero(kept > named)
    if not len(odd):
        return found
    resolved = [_resolved(sequence, int(partition), int(named[partition])) for partition in odd]
    index = np.arange(len(found))
    index[odd] = len(found) + np.arange(len(odd))
    return pa.concat_arrays([found, pa.array(resolved, DIRECTORY_LIST_TYPE)]).take(pa.array(index))


def _filled(directories: pa.Array, replicas: pa.Array) -> pa.Array:
    """The directories, with MIGRATING for each replica where the list is empty."""
    lengths, wanted = _lengths(directories), _lengths(replicas)
    is_empty = (lengths == 0) & (wanted > 0)
    if not is_empty.any():
        return directories
    sizes = np.where(is_empty, wanted, lengths)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = np.zeros((int(offsets[-1]), 16), np.uint8)
    values[...] = np.frombuffer(DIRECTORY_MIGRATING, np.uint8)
    values[np.repeat(~is_empty, sizes)] = uuid_bytes(directories.flatten())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), uuid_array(values))


def _resolved(sequence: _Sequence, partition: int, named: int) -> list[Uuid]:
    """The directories of one partition whose replicas changed without naming any: kept ones, else MIGRATING.

    Only records from before directories do that.
    """
    lists, end = sequence.elements.lists, int(sequence.ends[partition])
    before = max(at for at in range(int(sequence.starts[partition]), named + 1) if lists["replicas"][at].is_valid)
    brokers = lists["replicas"][before].as_py()
    directories = lists[DIRECTORIES][named].as_py() or [DIRECTORY_MIGRATING] * len(brokers)
    for at in range(named + 1, end):
        if sequence.elements.flags[at] & KEEPS_DIRECTORIES:
            known = dict(zip(brokers, directories, strict=False))
            brokers = lists["replicas"][at].as_py()
            directories = [known.get(broker, DIRECTORY_MIGRATING) for broker in brokers]
    return list(directories)


def _by_id(state: Elements) -> Longs:
    numbers = topic_codes(state.topic_ids)
    distinct = ids_by_code(state.topic_ids, numbers)
    ranks = np.empty(len(distinct), np.int32)
    ranks[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct), dtype=np.int32)
    return order_by(ranks[numbers], state.partition_ids.astype(np.int64))
