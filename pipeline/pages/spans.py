"""Time-lines: one row a thing, one bar for each length of time in which it was in one state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import plotly.graph_objects as go

from quorate.pipeline.pages.cells import duration, label
from quorate.pipeline.pages.drawing import ABSENT, BAD, COLOURS, DOUBTFUL, GOOD, Plot, drawn, utc

#: States of brokers.
UP_TIME_COLOURS: Final = {"up": GOOD, "shutting down": DOUBTFUL, "fenced": BAD, "not registered": ABSENT}
#: What is readable on a page, and what a browser draws without a wait.
ROWS_MAX: Final = 60
SPANS_MAX: Final = 6_000


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A row of the time-line was in a state from `start` to before `end`; `note` is shown where the pointer is."""

    row: str
    start: datetime
    end: datetime
    state: str
    note: str = ""


def spans(given: Iterable[TimelineSpan], *, colours: Mapping[str, str] | None = None, rows_max: int = ROWS_MAX) -> Plot:
    """Draw a time-line: leadership of partitions (a state is a leader), up-time of brokers, activity of controllers.

    Rows stand in the order in which they first come: the most telling first. Of more than `rows_max` rows the first
    are drawn, and of too many bars the longest.

    Args:
        colours: by state, which also gives the order of the legend; states that are not in it get what is left.
    """
    by_row: dict[str, list[TimelineSpan]] = {}
    for span in given:
        by_row.setdefault(span.row, []).append(span)
    rows = list(by_row)[:rows_max]
    kept = [span for row in rows for span in by_row[row]]
    cut = f"The first {len(rows):,} of {len(by_row):,} rows. " if len(by_row) > len(rows) else ""
    if len(kept) > SPANS_MAX:
        cut += f"The longest {SPANS_MAX:,} of {len(kept):,} bars."
        kept = sorted(kept, key=lambda span: span.end - span.start)[-SPANS_MAX:]
    by_state: dict[str, list[TimelineSpan]] = {state: [] for state in colours or ()}
    for span in kept:
        by_state.setdefault(span.state, []).append(span)
    figure = go.Figure()
    fixed = dict(colours or {})
    palette = dict(zip((s for s in by_state if s not in fixed), _cycle(set(fixed.values())), strict=False)) | fixed
    for state, those in by_state.items():
        if those:
            figure.add_trace(_bars(state, those, palette[state]))
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_xaxes(type="date")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=[label(row) for row in reversed(rows)])
    return drawn(figure, height=90 + 22 * max(len(rows), 2), cut=cut.strip())


def _cycle(taken: Collection[str]) -> Iterable[str]:
    """Colours over and over, none of which stands for a state of its own."""
    while True:
        yield from (colour for colour in COLOURS if colour not in taken)


def _bars(state: str, those: list[TimelineSpan], colour: str) -> go.Bar:
    starts, ends = utc([span.start for span in those]), utc([span.end for span in those])
    lasted = (ends - starts).astype("timedelta64[us]").astype(np.int64) / 1_000
    hover = [
        f"{label(span.row)}: {label(state)}<br>{start} to {end}, {duration(milliseconds / 1_000)}"
        + (f"<br>{label(span.note)}" if span.note else "")
        for span, start, end, milliseconds in zip(
            those, np.datetime_as_string(starts, "ms"), np.datetime_as_string(ends, "ms"), lasted, strict=True
        )
    ]
    return go.Bar(
        orientation="h",
        name=label(state),
        y=[label(span.row) for span in those],
        base=np.datetime_as_string(starts),
        x=lasted,
        hovertext=hover,
        hoverinfo="text",
        marker={"color": colour, "line": {"width": 0}},
    )
