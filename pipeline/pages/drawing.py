"""Shared by all plots: their look, and the note of what was left out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from quorate.pipeline.pages.cells import label

#: Told apart by people who see colours differently, and in grey (Okabe and Ito).
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#999999", "#000000")
GOOD, DOUBTFUL, BAD, ABSENT = "#009e73", "#e69f00", "#d55e00", "#d9d9d9"

Times = Sequence[datetime] | NDArray[np.datetime64]


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of Plotly's, what of the data is not in it ("" where all is), and its height in pixels."""

    figure: Any
    cut: str
    height: int


def drawn(figure: go.Figure, *, height: int, unit: str = "", cut: str = "", has_legend: bool = True) -> Plot:
    """Give a figure the look of the page; the unit stands at the axis of values."""
    figure.update_layout(
        template="plotly_white",
        colorway=COLOURS,
        height=height,
        margin={"l": 60, "r": 20, "t": 30, "b": 40},
        font={"family": "system-ui, sans-serif", "size": 12},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        showlegend=has_legend,
        hovermode="closest",
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    if unit:
        figure.update_yaxes(title_text=label(unit))
    return Plot(figure, cut, height)


def utc(times: Times) -> NDArray[np.datetime64]:
    """Return times as UTC microseconds without a zone, which is how an axis shows them."""
    if isinstance(times, np.ndarray):
        return times.astype("datetime64[us]")
    return np.array(
        [one.astimezone(UTC).replace(tzinfo=None) if one.tzinfo else one for one in times], "datetime64[us]"
    )
