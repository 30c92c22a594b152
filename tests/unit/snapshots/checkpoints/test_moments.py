"""Moments as they are written."""

from __future__ import annotations

import pytest

from quorate.snapshots.checkpoints.moments import InvalidMoment, Moment, parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0", Moment(offset=0)),
        ("2000", Moment(offset=2000)),
        ("epoch:7", Moment(epoch=7)),
        ("1970-01-01", Moment(time_ms=0)),
        ("1970-01-01T00:00:01Z", Moment(time_ms=1000)),
        ("1970-01-01T00:00:01.250", Moment(time_ms=1250)),
        ("1970-01-01 01:00:00+01:00", Moment(time_ms=0)),
    ],
)
def test_moment_that_is_written_is_read(text: str, moment: Moment) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize(
    "text", ["", "-1", "epoch:", "epoch:x", "yesterday", "2026-13-01", "2026-01-01T25:00:00Z", "1" * 20, "٣", "1e3"]
)
def test_text_that_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidMoment, match="is no moment"):
        parse_moment(text)
