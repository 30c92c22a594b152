"""Lines and areas over time, bars before and after, heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from quorate.pipeline.pages.cells import label, labels
from quorate.pipeline.pages.drawing import COLOURS, Plot, Times, drawn, utc

#: A line of more points is drawn by the lowest and the highest of each stretch, so that no peak is lost.
POINTS_MAX: Final = 4_000
BARS_MAX: Final = 200
#: Each colour comes in each of these.
_DASHES: Final = ("solid", "dash", "dot")
#: More lines cannot be told apart.
SERIES_MAX: Final = len(COLOURS) * len(_DASHES)
#: What a pile of more parts than there are colours has for the smallest of them.
OTHERS: Final = "others"
HEAT_ROWS_MAX: Final = 100
HEAT_COLUMNS_MAX: Final = 500


def over_time(
    times: Times, series: Mapping[str, ArrayLike], *, unit: str = "", is_stacked: bool = False, is_stepped: bool = False
) -> Plot:
    """Draw values over time: one line for each series, or areas on top of one another.

    Args:
        times: in order; as many as each series has values. is_stepped: a value holds until the next one is given, as
            counts from a log do.
    """
    at = utc(times)
    figure = go.Figure()
    names = list(series)[:SERIES_MAX]
    cut = f"The first {SERIES_MAX} of {len(series):,} lines." if len(series) > len(names) else ""
    for number, name in enumerate(names):
        values = np.asarray(series[name], dtype=np.float64)
        kept = _telling(values)
        figure.add_trace(
            go.Scatter(
                x=np.datetime_as_string(at[kept]),
                y=values[kept],
                name=label(name),
                mode="lines" if len(kept) > 1 else "markers",
                line={
                    "shape": "hv" if is_stepped else "linear",
                    "width": 0.5 if is_stacked else 1.5,
                    "dash": _DASHES[number // len(COLOURS)],
                },
                stackgroup="all" if is_stacked else None,
            )
        )
    figure.update_xaxes(type="date")
    figure.update_yaxes(rangemode="tozero")
    return drawn(figure, height=320, unit=unit, cut=cut)


def bars(names: Sequence[Any], series: Mapping[str, ArrayLike], *, unit: str = "", is_stacked: bool = False) -> Plot:
    """Draw a group of bars for each name: `bars(brokers, {"before": ..., "after": ...})`, or a pile of them.

    Of more than `BARS_MAX` names the first are drawn; in a pile the smallest parts are one where colours run out.
    """
    if is_stacked:
        series = _told_apart(series)
    shown = labels(names[:BARS_MAX])
    cut = f"The first {len(shown):,} of {len(names):,}." if len(names) > len(shown) else ""
    figure = go.Figure()
    for name, values in series.items():
        figure.add_trace(go.Bar(x=shown, y=np.asarray(values, dtype=np.float64)[:BARS_MAX], name=label(name)))
    figure.update_layout(barmode="stack" if is_stacked else "group", bargap=0.2, legend={"traceorder": "normal"})
    # Ids are names: without the type they would be a scale of numbers.
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=shown)
    return drawn(figure, height=320, unit=unit, cut=cut, has_legend=len(series) > 1)


def by_day(
    days: Sequence[date] | Sequence[str],
    series: Mapping[str, ArrayLike],
    *,
    unit: str = "",
    is_stacked: bool = False,
) -> Plot:
    """Draw a bar for each day, or lines and areas where there are too many of them: no day is left out."""
    if len(days) <= BARS_MAX:
        return bars(list(map(str, days)), series, unit=unit, is_stacked=is_stacked)
    if is_stacked:
        series = _told_apart(series)
    return over_time(np.array(days, "datetime64[D]"), series, unit=unit, is_stacked=is_stacked)


def heat_map(
    rows: Sequence[Any],
    columns: Sequence[Any] | NDArray[Any],
    values: ArrayLike,
    *,
    unit: str = "",
    is_time: bool = False,
) -> Plot:
    """Draw a field of values: one row for each name, one column for each name or (`is_time`) time.

    Of too many rows the first are drawn; of too many columns the highest value of neighbours.
    """
    field = np.asarray(values, dtype=np.float64)[:HEAT_ROWS_MAX]
    cut = f"The first {HEAT_ROWS_MAX} of {len(rows):,} rows. " if len(rows) > HEAT_ROWS_MAX else ""
    across: Any = np.datetime_as_string(utc(columns)) if is_time else np.array(labels(columns), dtype=object)
    if field.shape[1] > HEAT_COLUMNS_MAX:
        starts = _starts(field.shape[1], HEAT_COLUMNS_MAX)
        field, across = np.fmax.reduceat(field, starts, axis=1), across[starts]
        cut += f"{len(columns):,} columns in {HEAT_COLUMNS_MAX}: the highest of each."
    down = labels(rows[:HEAT_ROWS_MAX])
    figure = go.Figure(
        go.Heatmap(x=across, y=down, z=field, colorscale="Blues", zmin=0, colorbar={"title": {"text": label(unit)}})
    )
    figure.update_xaxes(type="date" if is_time else "category")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=down[::-1])
    return drawn(figure, height=90 + 18 * max(len(down), 4), cut=cut.strip(), has_legend=False)


def _told_apart(series: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """The parts of a pile, those that are largest in sum first, and not more of them than there are colours."""
    values = {name: np.asarray(part, dtype=np.float64) for name, part in series.items()}
    names = sorted(values, key=lambda name: -float(values[name].sum()))
    if len(names) <= len(COLOURS):
        return dict(series)
    kept, joined = names[: len(COLOURS) - 1], names[len(COLOURS) - 1 :]
    return {**{name: values[name] for name in kept}, OTHERS: np.sum([values[name] for name in joined], axis=0)}


def _starts(count: int, parts: int) -> NDArray[np.int64]:
    return np.arange(parts, dtype=np.int64) * count // parts


def _telling(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indexes to draw: all, or of each stretch the lowest and the highest, and both ends."""
    if len(values) <= POINTS_MAX:
        return np.arange(len(values), dtype=np.int64)
    starts = _starts(len(values), POINTS_MAX // 2)
    stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    # Sorted by value within each stretch: its first is the lowest, its last the highest.
    order = np.lexsort((values, stretch))
    ends = np.append(starts[1:], len(values)) - 1
    return np.unique(np.concatenate([order[starts], order[ends], [0, len(values) - 1]]))
