"""The series drawn on the page of a history, made of what was counted as the versions were. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from quorate.pipeline.history.counting import PARTITIONS, DayCounts, HistoryCounts, date_of
from quorate.pipeline.tables.history_schema import TABLES

#: What is counted day by day: its name, and the table of its versions.
_HELD: Final = {"partitions": PARTITIONS, "topics": "topic_versions"}
#: Of a longer history the last days are drawn; what came before them counts in what is there.
_DAYS_MAX: Final = 3_660


@dataclass(frozen=True, slots=True)
class BusyTopic:
    """A topic whose partitions changed most."""

    topic: str
    versions: int
    partitions: int
    #: Time without a leader, of all its partitions together.
    leaderless: timedelta


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """By day (UTC), without a gap from the first change to the last."""

    days: list[date]
    #: By table: versions that began.
    begun: dict[str, list[int]]
    #: Partitions and topics there at the end of each day.
    held: dict[str, list[int]]
    #: Hours without a leader, of all partitions together, by the day on which they began.
    leaderless_hours: list[float]
    topics: list[BusyTopic]


def history_series(counts: HistoryCounts) -> HistorySeries:
    """The series of one cluster."""
    days_of = {name: counts.days.get(name, {}) for name in TABLES}
    begun = {name: {day: one.begun for day, one in days_of[name].items() if one.begun} for name in TABLES}
    known = sorted(set().union(*begun.values()))
    if not known:
        return HistorySeries([], {}, {}, [], [])
    end = max(known[-1], *(day for of_table in days_of.values() for day in of_table))
    days = list(range(max(known[0], end - _DAYS_MAX + 1), end + 1))
    hours = {day: one.leaderless_us(day, counts.last_us) / 3_600_000_000 for day, one in days_of[PARTITIONS].items()}
    return HistorySeries(
        days=[date_of(day) for day in days],
        begun={name: [of_table.get(day, 0) for day in days] for name, of_table in begun.items()},
        held={name: _standing(days_of[table], days) for name, table in _HELD.items()},
        leaderless_hours=[hours.get(day, 0.0) for day in days],
        topics=[
            BusyTopic(one.topic, one.versions, one.partitions, one.leaderless(counts.last_us)) for one in counts.topics
        ],
    )


def _standing(of_table: Mapping[int, DayCounts], days: list[int]) -> list[int]:
    """The number that there are at the end of each day; a version that began before the first of them counts from it
    on.
    """
    count = sum(one.made - one.ended for day, one in of_table.items() if day < days[0])
    found = []
    for day in days:
        if day in of_table:
            count += of_table[day].made - of_table[day].ended
        found.append(count)
    return found
