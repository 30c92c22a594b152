"""A query's selection from a log: bounds from the options, tightened by the filters that Spark hands down.

Spark offers simple comparisons that are all to hold. Those taken here are kept exactly, by offsets, times of batches,
types and clusters, so that Spark need not look again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from quorate.pipeline.files.walk import EVERYTHING, RecordSelection

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Selection:
    """The records that are wanted; all conditions hold together."""

    wanted: RecordSelection = EVERYTHING
    #: Names; None = all.
    types: frozenset[str] | None = None
    clusters: frozenset[str] | None = None

    def push(self, filters: Iterable[Filter]) -> tuple[Selection, list[Filter]]:
        """The selection with these filters, and those that Spark must apply itself."""
        selection, left = self, []
        for one in filters:
            narrowed = selection._narrowed(one)
            if narrowed is None:
                left.append(one)
            else:
                selection = narrowed
        return selection, left

    def _narrowed(self, one: Filter) -> Selection | None:
        if not isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual | In | LessThan | LessThanOrEqual):
            return None
        match one.attribute:
            case ("offset",):
                return self._by_offset(one)
            case ("time",):
                return self._by_time(one)
            case ("type",):
                names = _names(one)
                return None if names is None else replace(self, types=_both(self.types, names))
            case ("cluster_id",):
                names = _names(one)
                return None if names is None else replace(self, clusters=_both(self.clusters, names))
        return None

    def _by_offset(self, one: Filter) -> Selection | None:
        bounds = _bounds(one, getattr(one, "value", None))
        if bounds is None:
            return None
        first, end = bounds
        wanted = self.wanted
        if first is not None:
            wanted = replace(wanted, first_offset=max(wanted.first_offset, first))
        if end is not None:
            wanted = replace(wanted, end_offset=end if wanted.end_offset is None else min(wanted.end_offset, end))
        return replace(self, wanted=wanted)

    def _by_time(self, one: Filter) -> Selection | None:
        value = getattr(one, "value", None)
        bounds = _bounds(one, _micros(value)) if isinstance(value, datetime) else None
        if bounds is None:
            return None
        first, end = bounds
        wanted = self.wanted
        if first is not None:
            first = -(-first // 1000)
            wanted = replace(wanted, first_time=first if wanted.first_time is None else max(wanted.first_time, first))
        if end is not None:
            last = -(-end // 1000) - 1
            wanted = replace(wanted, last_time=last if wanted.last_time is None else min(wanted.last_time, last))
        return replace(self, wanted=wanted)


def _bounds(one: Filter, value: Any) -> tuple[int | None, int | None] | None:
    """The first whole number that passes, and the end (exclusive); None where that is not so simple."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    match one:
        case EqualTo():
            return value, value + 1
        case GreaterThan():
            return value + 1, None
        case GreaterThanOrEqual():
            return value, None
        case LessThan():
            return None, value
        case LessThanOrEqual():
            return None, value + 1
    return None


def _names(one: Filter) -> frozenset[str] | None:
    if isinstance(one, EqualTo):
        values: tuple[Any, ...] = (one.value,)
    elif isinstance(one, In):
        values = tuple(one.value)
    else:
        return None
    return frozenset(values) if all(isinstance(value, str) for value in values) else None


def _both(one: frozenset[str] | None, other: frozenset[str]) -> frozenset[str]:
    return other if one is None else one & other


def _micros(value: datetime) -> int:
    """Microseconds since 1970; Spark's sessions have UTC here."""
    since = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
