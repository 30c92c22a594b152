"""`--since` and `--until`."""

from __future__ import annotations

import pytest
import typer

from quorate.metadata_log.batches.batch import data_batch, parse_header, place_batch
from quorate.metadata_log.records.records import NoOpRecord
from quorate.scripts.cli.logs.time_spans import TimeSpan, moment_of
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay_state import ReplayState

NOW = 1_700_000_000_000


def span(since: str | None = None, until: str | None = None) -> TimeSpan:
    return TimeSpan.of(since, until, lambda: NOW)


def held(of: TimeSpan) -> list[int]:
    """Of ten batches of two records, a second and an epoch apart and the last one now, where those in it begin."""
    made = (
        place_batch(data_batch([(NoOpRecord(), 0)] * 2, NOW - (9 - number) * 1000), number * 2, number)
        for number in range(10)
    )
    return [header.base_offset for header in map(parse_header, made) if of.holds(header)]


@pytest.mark.parametrize(
    ("text", "ago_ms"), [("90s", 90_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1.5d", 129_600_000), ("0s", 0)]
)
def test_time_may_be_said_as_how_long_ago(text: str, ago_ms: int) -> None:
    assert moment_of(text, NOW) == Moment(time_ms=NOW - ago_ms)


@pytest.mark.parametrize("text", ["2 h", "h", "-1h", "2y", "yesterday", "1e3s", "9999999999s"])
def test_text_that_names_no_moment_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(
        typer.BadParameter, match=r"is no moment: say how long ago, as 90s, 30m, 2h or 7d, in 9 digits at most"
    ):
        moment_of(text, NOW)


def test_span_holds_batches_between_its_bounds_both_included() -> None:
    assert held(span()) == list(range(0, 20, 2))
    assert held(span("3s", "1s")) == [12, 14, 16]
    assert held(span("5", "9")) == [4, 6, 8]
    assert held(span("epoch:6", "epoch:8")) == [14, 16]
    assert held(span(None, "2023-11-14T22:13:12Z")) == [0, 2]
    assert [offset for offset in range(10) if span("5", "9").holds_offset(offset)] == [5, 6, 7, 8]


@pytest.mark.parametrize(("since", "until"), [("1h", "2h"), ("10", "9"), ("epoch:3", "epoch:2")])
def test_span_that_ends_before_it_begins_is_refused(since: str, until: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"{until} is before --since {since}"):
        span(since, until)


@pytest.mark.parametrize(("since", "is_behind"), [("10s", True), ("11s", False), ("20", True), ("19", False)])
def test_span_lies_behind_a_state_that_has_nothing_of_it(since: str, is_behind: bool) -> None:
    """The state's last batch ended at offset 20, eleven seconds ago."""
    state = ReplayState(EMPTY_IMAGE._replace(provenance=Provenance(19, 3, NOW - 11_000)))
    assert span(since).begins_behind(state) is is_behind
