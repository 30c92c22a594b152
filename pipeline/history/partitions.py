"""Every version of every partition of some topics: rows sorted by partition and offset, each field filled forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.ids import DIRECTORY_MIGRATING, Uuid, uuid_text
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.fields import (
    BASE,
    BIT,
    DIRECTORIES,
    ID_LISTS,
    KEEPS_DIRECTORIES,
    Bools,
    Flags,
    Ints,
    Longs,
)
from quorate.pipeline.fold.grouping import ids_by_code, order_by, partition_codes, topic_codes
from quorate.pipeline.fold.rows import RowTable
from quorate.pipeline.fold.timeline import NEVER, NEVER_YET, Life
from quorate.pipeline.history.cells import times_of
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.tables.history_schema import PARTITION_VERSIONS

_ELR_LISTS: Final = ("eligible_leader_replicas", "last_known_elr")
_ELR_BITS: Final = BIT["eligible_leader_replicas"] | BIT["last_known_elr"]
#: Room for an offset beside a partition's number in one int64.
_OFFSET_ROOM: Final = 1 << 40
_DAY_MS: Final = 86_400_000
_CHANGES: Final = ("created", "changed", "elr_cleared", "base")
_CREATED, _CHANGED, _CLEARED, _BASE = range(len(_CHANGES))


def partition_versions(rows: RowTable, timeline: Timeline, cluster_id: str, base: tuple[int, int] | None) -> pa.Table:
    """The versions of all partitions of some topics, by the day on which they begin, partition and offset.

    Args:
        rows: all mass records of these topics, with their times; those of a base have negative offsets.
        base: the offset of the last record that the base holds, and its time.

    Raises:
        FoldRefused: a record of a partition or topic that is not there.
    """
    transactions = timeline.transactions
    rows = rows.where(lambda offsets: transactions.count_at(offsets, timeline.moment))
    if not len(rows):
        return PARTITION_VERSIONS.empty_table()
    ordered = _Ordered.of(rows, timeline)
    ordered.require_declared()
    return _Output.of(ordered, _Spans.of(ordered, timeline, base)).table(cluster_id)


# --- order -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ordered:
    """One row a version, by partition and offset: mass records, and clearings where there was something to clear."""

    rows: RowTable
    #: Of all rows as they came, for lists to be taken from.
    topic_ids: ByteColumn
    partition_ids: Ints
    #: From here on everything is in order. The row as it came; one behind the last for a clearing.
    source: Longs
    #: A row as it came of the same partition.
    of_partition: Longs
    offsets: Longs
    times: Longs
    flags: Flags
    #: Whether a partition begins with this row.
    is_start: Bools

    @classmethod
    def of(cls, rows: RowTable, timeline: Timeline) -> _Ordered:
        topic_ids, partition_ids = rows.topic_ids(), rows.scalars("partition_ids")
        codes, offsets, times, flags = (
            partition_codes(topic_ids, partition_ids),
            rows.offsets(),
            times_of(rows),
            rows.flags(),
        )
        count = len(codes)
        source = of_partition = np.arange(count)
        cleared, cleared_at, cleared_time = _effective_clearings(rows, codes, offsets, flags, topic_ids, timeline)
        if len(cleared):
            codes = np.concatenate([codes, codes[cleared]])
            offsets = np.concatenate([offsets, cleared_at])
            times = np.concatenate([times, cleared_time])
            flags = np.concatenate([flags, np.full(len(cleared), _ELR_BITS, np.uint16)])
            of_partition = np.concatenate([source, cleared])
            source = np.concatenate([source, np.full(len(cleared), count)])
        order = order_by(codes, offsets)
        codes = codes[order]
        is_start = np.concatenate([[True], codes[1:] != codes[:-1]])
        return cls(
            rows, topic_ids, partition_ids, source[order], of_partition[order], offsets[order], times[order],
            flags[order], is_start,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.source)

    def latest(self, bits: int) -> Longs:
        """For every row the last one up to it that has any of some bits."""
        found: Longs = np.maximum.accumulate(np.where(self.flags & bits, np.arange(len(self)), 0))
        return found

    def scalar(self, name: str) -> Ints:
        """A field of every row in order; meaningless where the row does not set it."""
        found: Ints = np.append(self.rows.scalars(name), np.int32(0))[self.source]
        return found

    def require_declared(self) -> None:
        """See to it that each partition begins with its declaration.

        Raises:
            FoldRefused: one does not.
        """
        unknown = np.flatnonzero(self.is_start & ((self.flags & BASE) == 0))
        if len(unknown):
            row = int(unknown[np.argmin(self.offsets[unknown])])
            at = int(self.of_partition[row])
            name = f"{uuid_text(self.topic_ids[at].tobytes())}-{int(self.partition_ids[at])}"
            raise FoldRefused(f"PartitionChangeRecord: there is no partition {name}", int(self.offsets[row]))


def _effective_clearings(
    rows: RowTable, codes: Ints, offsets: Longs, flags: Flags, topic_ids: ByteColumn, timeline: Timeline
) -> tuple[Longs, Longs, Longs]:
    """Clearings that found something: a row of the partition, the clearing's offset, its time.

    An ELR that a record sets lasts until the next one that sets it, and is cleared by the first clearing in between.
    """
    clearings = timeline.topics.clearings
    if not clearings:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    found_rows, found_at = [], []
    removed = _removals(topic_ids, timeline)
    for name in _ELR_LISTS:
        sets = np.flatnonzero(flags & BIT[name])
        sets = sets[order_by(codes[sets], offsets[sets])]
        is_last = np.append(codes[sets][1:] != codes[sets][:-1], True)
        until = np.where(is_last, removed[sets], np.append(offsets[sets][1:], 0))
        holds = _lengths(rows.lists(name))[sets] > 0
        first = _first_clearing(topic_ids[sets], offsets[sets], timeline)
        is_cleared = holds & (first < until)
        found_rows.append(sets[is_cleared])
        found_at.append(first[is_cleared])
    row, at = np.concatenate(found_rows), np.concatenate(found_at)
    # Both lists of one partition are cleared by one clearing: that is one change.
    _, one_of = np.unique(codes[row].astype(np.int64) * _OFFSET_ROOM + at, return_index=True)
    row, at = row[one_of], at[one_of]
    time_of = {clearing.offset: timeline.time_of(clearing.offset) for clearing in clearings}
    return row, at, np.array([time_of[offset] for offset in at.tolist()], np.int64)


def _first_clearing(topic_ids: ByteColumn, offsets: Longs, timeline: Timeline) -> Longs:
    """For each row the first clearing behind it that means its topic; ``NEVER`` where there is none."""
    clearings = timeline.topics.clearings
    of_all = np.array([*sorted(c.offset for c in clearings if c.topic_id is None), NEVER], np.int64)
    first: Longs = of_all[np.searchsorted(of_all, offsets, "right")]
    numbers = topic_codes(topic_ids)
    ids = ids_by_code(topic_ids, numbers)
    ranks = {topic_id: rank for rank, topic_id in enumerate(ids)}
    pairs = [(ranks[c.topic_id], c.offset) for c in clearings if c.topic_id is not None and c.topic_id in ranks]
    if pairs:
        keys = np.sort(np.array([rank * _OFFSET_ROOM + offset for rank, offset in pairs], np.int64))
        rows = numbers.astype(np.int64) * _OFFSET_ROOM
        found = np.append(keys, NEVER)[np.searchsorted(keys, rows + np.maximum(offsets, -1), "right")] - rows
        first = np.minimum(first, np.where(found < _OFFSET_ROOM, found, NEVER))
    return first


def _removals(topic_ids: ByteColumn, timeline: Timeline) -> Longs:
    """For each row where its topic is removed; ``NEVER`` while it lives, or where it never did."""
    numbers = topic_codes(topic_ids)
    lives = [timeline.topics.lives.get(topic_id) for topic_id in ids_by_code(topic_ids, numbers)]
    found: Longs = np.array([NEVER if life is None else life.removed for life in lives], np.int64)[numbers]
    return found


def _lengths(column: pa.Array) -> Longs:
    found: Longs = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


# --- validity ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spans:
    """From when to when each version holds."""

    first: Longs
    first_time: Longs
    #: Meaningless where it still holds.
    end: Longs
    end_time: Longs
    is_open: Bools
    is_removed: Bools
    #: By row: number of its topic, and the topics' ids and names by number.
    topic: Ints
    ids: list[Uuid]
    names: list[str]

    @classmethod
    def of(cls, ordered: _Ordered, timeline: Timeline, base: tuple[int, int] | None) -> _Spans:
        topic = topic_codes(ordered.topic_ids)
        ids = ids_by_code(ordered.topic_ids, topic)
        topic = topic[ordered.of_partition]
        _require_topics(ordered, timeline, topic, ids)
        first, first_time = timeline.effective(ordered.offsets, ordered.times)
        if base is not None:
            first = np.where(first < 0, base[0], first)
            first_time = np.where(ordered.offsets < 0, base[1], first_time)
        removals = [timeline.removal(topic_id) for topic_id in ids]
        removed_at = np.array([NEVER if found is None else found[0] for found in removals], np.int64)[topic]
        removed_time = np.array([0 if found is None else found[1] for found in removals], np.int64)[topic]
        is_last = np.append(ordered.is_start[1:], True)
        return cls(
            first=first,
            first_time=first_time,
            end=np.where(is_last, removed_at, np.append(first[1:], 0)),
            end_time=np.where(is_last, removed_time, np.append(first_time[1:], 0)),
            is_open=is_last & (removed_at == NEVER),
            is_removed=is_last & (removed_at != NEVER),
            topic=topic,
            ids=ids,
            names=[timeline.topics.lives[topic_id].name for topic_id in ids],
        )


def _require_topics(ordered: _Ordered, timeline: Timeline, topic: Ints, ids: list[Uuid]) -> None:
    unknown = Life("", NEVER_YET, NEVER, NEVER)
    lives = [timeline.topics.lives.get(topic_id, unknown) for topic_id in ids]
    created = np.array([life.created for life in lives], np.int64)[topic]
    removed = np.array([life.removed for life in lives], np.int64)[topic]
    lost = np.flatnonzero((ordered.offsets < created) | (ordered.offsets > removed))
    if len(lost):
        row = int(lost[np.argmin(ordered.offsets[lost])])
        name = uuid_text(ids[int(topic[row])])
        raise FoldRefused(f"a partition of topic {name}, which is not there", int(ordered.offsets[row]))


# --- columns -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Output:
    """The versions as they are to be written: those that begin on one day together, else by partition and offset.

    What a field was last set to is found in the order of partitions; only then is it taken in the order of days.
    """

    ordered: _Ordered
    spans: _Spans
    #: For each row of the output the row in order.
    rows: Longs

    @classmethod
    def of(cls, ordered: _Ordered, spans: _Spans) -> _Output:
        return cls(ordered, spans, np.argsort(spans.first_time // _DAY_MS, kind="stable"))

    def table(self, cluster_id: str) -> pa.Table:
        """All columns."""
        spans, rows = self.spans, self.rows
        columns: dict[str, Any] = {
            "cluster_id": _by_code(np.zeros(len(rows), np.int32), [cluster_id]),
            "topic_id": _by_code(spans.topic[rows], [uuid_text(topic_id) for topic_id in spans.ids]),
            "topic": _by_code(spans.topic[rows], spans.names),
            "partition": pa.array(self.ordered.partition_ids[self.ordered.of_partition[rows]]),
            "leader": pa.array(self._scalar("leader", BIT["leader"])),
            "leader_recovery_state": pa.array(self._scalar("leader_recovery_state", BIT["leader_recovery_state"])),
            **self._epochs(),
            **{name: self._list(self.ordered.rows.lists(name), BIT[name]) for name in ID_LISTS},
            "directories": self._directories(),
            **self._validity(),
        }
        return pa.table([columns[name] for name in PARTITION_VERSIONS.names], schema=PARTITION_VERSIONS)

    def _scalar(self, name: str, bit: int) -> Ints:
        found: Ints = self.ordered.scalar(name)[self.ordered.latest(bit)[self.rows]]
        return found

    def _epochs(self) -> dict[str, pa.Array]:
        ordered = self.ordered
        declared = ordered.latest(BASE)
        names_leader = np.cumsum((ordered.flags & (BIT["leader"] | BASE)) == BIT["leader"], dtype=np.int64)
        of_leader = ordered.scalar("leader_epoch")[declared] + (names_leader - names_leader[declared])
        of_partition = ordered.scalar("partition_epoch")[declared] + (np.arange(len(ordered)) - declared)
        return {
            "leader_epoch": pa.array(of_leader[self.rows].astype(np.int32)),
            "partition_epoch": pa.array(of_partition[self.rows].astype(np.int32)),
        }

    def _list(self, column: pa.Array, bit: int) -> pa.Array:
        """A list field filled forward; a clearing's lists are empty."""
        source = self.ordered.source[self.ordered.latest(bit)[self.rows]]
        return _with_empty(column).take(pa.array(source))

    def _validity(self) -> dict[str, pa.Array]:
        ordered, spans, rows = self.ordered, self.spans, self.rows
        change = np.full(len(ordered), _CHANGED, np.int32)
        change[((ordered.flags & BASE) != 0) & ordered.is_start] = _CREATED
        change[ordered.source == len(ordered.rows)] = _CLEARED
        change[ordered.offsets < 0] = _BASE
        record_offset = np.where(ordered.offsets < 0, spans.first, ordered.offsets)
        is_open = spans.is_open[rows]
        return {
            "valid_from_offset": pa.array(spans.first[rows]),
            "valid_to_offset": pa.array(spans.end[rows], mask=is_open),
            "valid_from": _time(spans.first_time[rows]),
            "valid_to": _time(spans.end_time[rows], mask=is_open),
            "record_offset": pa.array(record_offset[rows]),
            "change": _by_code(change[rows], list(_CHANGES)),
            "removed": pa.array(spans.is_removed[rows]),
        }

    def _directories(self) -> pa.Array:
        """As texts: as named last, MIGRATING where none are, kept ones where only the replicas changed."""
        ordered = self.ordered
        raw, replicas = ordered.rows.lists(DIRECTORIES), ordered.rows.lists("replicas")
        encoded = raw.flatten().dictionary_encode()
        texts = [uuid_text(uuid) for uuid in encoded.dictionary.to_pylist()]
        codes = pa.ListArray.from_arrays(pa.array(_starts(_lengths(raw))), encoded.indices)
        named = ordered.latest(BIT[DIRECTORIES])
        is_odd = ordered.latest(BIT[DIRECTORIES] | KEEPS_DIRECTORIES) > named
        has_none = _lengths(_with_empty(codes))[ordered.source[named]] == 0
        is_odd |= has_none & (_lengths(_with_empty(replicas))[ordered.source[ordered.latest(BIT["replicas"])]] > 0)
        if is_odd.any():
            resolved = _resolved(ordered, codes, replicas, np.flatnonzero(is_odd), len(texts))
            filled = resolved.take(pa.array(self.rows))
        else:
            filled = self._list(codes, BIT[DIRECTORIES])
        texts.append(uuid_text(DIRECTORY_MIGRATING))
        dictionary = pa.DictionaryArray.from_arrays(filled.flatten(), pa.array(texts, pa.string()))
        return pa.ListArray.from_arrays(pa.array(_starts(_lengths(filled))), dictionary)


def _by_code(codes: Ints, texts: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()))


def _time(milliseconds: Longs, mask: Bools | None = None) -> pa.Array:
    return pa.array(milliseconds * 1000, pa.int64(), mask=mask).cast(pa.timestamp("us", tz="UTC"))


def _with_empty(column: pa.Array) -> pa.Array:
    """The lists, and an empty one behind them."""
    return pa.concat_arrays([column, pa.array([[]], column.type)])


def _starts(lengths: Longs) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _resolved(ordered: _Ordered, codes: pa.Array, replicas: pa.Array, odd: Longs, migrating: int) -> pa.Array:
    """The directories in order, those of the odd rows worked out one after the other: few, from before directories."""
    filled = _with_empty(codes).take(pa.array(ordered.source[ordered.latest(BIT[DIRECTORIES])]))
    brokers_of = _with_empty(replicas).take(pa.array(ordered.source[ordered.latest(BIT["replicas"])]))
    fixed: dict[int, list[int]] = {}
    for row in odd.tolist():
        known: dict[int, int] = {}
        if not ordered.is_start[row] and not ordered.flags[row] & BASE:
            before = fixed[row - 1] if row - 1 in fixed else filled[row - 1].as_py()
            known = dict(zip(brokers_of[row - 1].as_py(), before, strict=False))
        fixed[row] = [known.get(broker, migrating) for broker in brokers_of[row].as_py()]
    index = np.arange(len(filled))
    index[odd] = len(filled) + np.arange(len(odd))
    return pa.concat_arrays([filled, pa.array(list(fixed.values()), filled.type)]).take(pa.array(index))
