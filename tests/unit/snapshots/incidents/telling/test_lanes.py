"""Spans of time, made of what began and ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quorate.snapshots.incidents.telling import lanes

BEGIN = datetime(2026, 1, 31, tzinfo=UTC)


def moved(number: int, seconds: float | None) -> dict[str, Any]:
    """A reassignment that took so long; None: it is open."""
    to_time = None if seconds is None else BEGIN + timedelta(seconds=seconds)
    place = {"topic": "orders", "partition": number, "from_offset": 10 + number, "to_offset": 90 + number}
    return {**place, "from_time": BEGIN, "to_time": to_time}


@pytest.mark.parametrize(("took", "lasts_ms"), [((3, 8, 5), 8_000), ((3, None, 5), None), ((3, 5, None), None)])
def test_reassignments_that_began_together_last_as_long_as_the_longest(
    took: tuple[float | None, ...], lasts_ms: int | None
) -> None:
    rows = [moved(number, seconds) for number, seconds in enumerate(took)]
    (span,) = lanes._reassignments(rows, timedelta(seconds=10))
    assert (span.from_offset, span.partitions) == (10, 3)
    assert (None if span.to_ms is None else span.to_ms - span.from_ms) == lasts_ms
    assert span.text == "reassignment of 3 partitions (orders-0, ...)"
