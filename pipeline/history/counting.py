"""Counts for the page of a history, made with a bucket's versions: no table is read again for it. Pure.

A topic is in one bucket whole, so its counts are whole; one that was deleted and made again is two. Those of a day are
added up over the buckets of a cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Of one bucket, and of a page.
TOPICS_SHOWN: Final = 50
PARTITIONS: Final = "partition_versions"
_DAY_US: Final = 86_400_000_000
_MADE: Final = ("created", "base")
Longs = npt.NDArray[np.int64]


@dataclass(slots=True)
class DayCounts:
    """Versions of one table on a day; times in microseconds since 1970."""

    #: That began; that began because something was made; whose subject was removed.
    begun: int = 0
    made: int = 0
    ended: int = 0
    #: Of those that began without a leader: how long they lasted, of those that ended; of the others how many there
    #: are, and how far in the day they began, together.
    lasted_us: int = 0
    open: int = 0
    since_midnight_us: int = 0

    def __add__(self, other: DayCounts) -> DayCounts:
        return DayCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def leaderless_us(self, day: int, last_us: int) -> int:
        """Of those that began on the day, together; what has not ended lasts until the history does."""
        return self.lasted_us + self.open * (last_us - day * _DAY_US) - self.since_midnight_us


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """Versions of the partitions of one topic."""

    topic: str
    versions: int
    partitions: int
    #: Without a leader: how long those lasted that ended; of the others how many, and since when, together.
    lasted_us: int
    open: int
    open_since_us: int

    def leaderless(self, last_us: int) -> timedelta:
        """Of all partitions together; what has not ended lasts until the history does."""
        return timedelta(microseconds=self.lasted_us + self.open * last_us - self.open_since_us)


@dataclass(slots=True)
class HistoryCounts:
    """Of one bucket, or of all of a cluster."""

    #: When the last version began.
    last_us: int = 0
    #: By table and day since 1970.
    days: dict[str, dict[int, DayCounts]] = field(default_factory=dict)
    #: Those that changed most, first.
    topics: list[TopicCounts] = field(default_factory=list)

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> Self:
        """The counts of a bucket's tables of versions."""
        found = cls()
        for name, table in tables.items():
            if not table.num_rows:
                continue
            began, ended = (_micros(table[column]) for column in ("valid_from", "valid_to"))
            found.last_us = max(found.last_us, int(began.max()))
            found.days[name] = _days(table, began, ended)
            if name == PARTITIONS:
                found.topics = _topics(table, began, ended)
        return found

    def add(self, other: HistoryCounts) -> None:
        """Take in those of another bucket."""
        self.last_us = max(self.last_us, other.last_us)
        for name, days in other.days.items():
            mine = self.days.setdefault(name, {})
            for day, counts in days.items():
                mine[day] = mine.get(day, DayCounts()) + counts
        self.topics = _most(self.topics + other.topics)

    def to_json(self) -> str:
        """For a row of results; read back by ``from_json``."""
        days = {name: {day: _values(one) for day, one in counts.items()} for name, counts in self.days.items()}
        return json.dumps([self.last_us, days, [_values(one) for one in self.topics]])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The counts that ``to_json`` wrote."""
        last_us, days, topics = json.loads(text)
        by_table = {
            name: {int(day): DayCounts(*values) for day, values in counts.items()} for name, counts in days.items()
        }
        return cls(last_us, by_table, [TopicCounts(*values) for values in topics])


def _values(counts: DayCounts | TopicCounts) -> list[Any]:
    return [getattr(counts, name) for name in counts.__slots__]


def _micros(column: pa.ChunkedArray) -> Longs:
    """Microseconds since 1970; -1: there is none."""
    found: Longs = pc.fill_null(column.cast(pa.int64()), -1).to_numpy()
    return found


def _days(table: pa.Table, began: Longs, ended: Longs) -> dict[int, DayCounts]:
    day = began // _DAY_US
    is_made = pc.is_in(table["change"].cast(pa.string()), pa.array(_MADE)).to_numpy(zero_copy_only=False)
    is_removed = table["removed"].to_numpy(zero_copy_only=False)
    days: dict[int, DayCounts] = {}

    def note(name: str, of: Longs, amounts: Longs) -> None:
        for one, amount in _sums(of, amounts).items():
            counts = days.setdefault(one, DayCounts())
            setattr(counts, name, getattr(counts, name) + amount)

    ones = np.ones(len(day), np.int64)
    note("begun", day, ones)
    note("made", day[is_made], ones[is_made])
    note("ended", ended[is_removed] // _DAY_US, ones[is_removed])
    if "leader" in table.column_names:
        leaderless = table["leader"].to_numpy() == -1
        is_open = leaderless & (ended < 0)
        is_over = leaderless & (ended >= 0)
        note("lasted_us", day[is_over], ended[is_over] - began[is_over])
        note("open", day[is_open], ones[is_open])
        note("since_midnight_us", day[is_open], began[is_open] % _DAY_US)
    return days


def _sums(keys: Longs, amounts: Longs) -> dict[int, int]:
    distinct, place = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place, amounts)
    return dict(zip(distinct.tolist(), sums.tolist(), strict=True))


def _topics(table: pa.Table, began: Longs, ended: Longs) -> list[TopicCounts]:
    codes = table["topic_id"].cast(pa.string()).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    _, first_rows = np.unique(codes, return_index=True)
    names = table["topic"].cast(pa.string()).take(pa.array(first_rows)).to_pylist()
    leaderless = table["leader"].to_numpy() == -1
    is_open, is_over = leaderless & (ended < 0), leaderless & (ended >= 0)
    pairs = np.unique(codes << 32 | table["partition"].to_numpy().astype(np.int64))
    partitions = Counter((pairs >> 32).tolist())
    versions, lasted, still = (
        _sums(codes, np.ones(len(codes), np.int64)),
        _sums(codes[is_over], ended[is_over] - began[is_over]),
        _sums(codes[is_open], np.ones(int(is_open.sum()), np.int64)),
    )
    since: Counter[int] = Counter()
    for code, time in zip(codes[is_open].tolist(), began[is_open].tolist(), strict=True):
        since[code] += time  # times since 1970 of many partitions are more than 64 bits hold
    return _most(
        TopicCounts(names[code], count, partitions[code], lasted.get(code, 0), still.get(code, 0), since[code])
        for code, count in versions.items()
    )


def _most(topics: Iterable[TopicCounts]) -> list[TopicCounts]:
    return sorted(topics, key=lambda one: (-one.versions, one.topic))[:TOPICS_SHOWN]


def date_of(day: int) -> Any:
    """The date of a day since 1970."""
    return datetime.fromtimestamp(day * _DAY_US / 1_000_000, UTC).date()
