"""The written form of values on a page: the same in tables, facts and labels of plots."""

from __future__ import annotations

import html
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_NONE: Final = "–"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def cell(value: Any) -> str:
    """Return a value as text; not escaped yet.

    Whole numbers are grouped in threes: an id is passed as text. A time without a zone is taken as UTC.
    """
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, timedelta):
        return duration(value.total_seconds())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or _NONE
    # A numpy number is what it is in Python.
    return cell(value.item()) if hasattr(value, "item") else str(value)


def is_number(value: Any) -> bool:
    """Whether a cell is set flush right."""
    return isinstance(value, int | float | timedelta) or (hasattr(value, "item") and is_number(value.item()))


def duration(seconds: float) -> str:
    """Return a length of time as its two largest units: `3 d 4 h`, `2 min 5 s`, `1.25 s`, `12 ms`."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 1:
        return f"{seconds * 1_000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole, smaller = round(seconds), "s"
    for unit, name in reversed(_UNITS):
        larger = {"min": 3_600, "h": 86_400}.get(name)
        if larger is None or whole < larger:
            count, rest = divmod(whole, unit)
            rest //= {"s": 1, "min": 60, "h": 3_600}[smaller]
            return f"{count} {name} {rest} {smaller}" if rest else f"{count} {name}"
        smaller = name
    raise AssertionError("days have no larger unit")


def label(text: Any) -> str:
    """Return the text of a value for a plot, where a few HTML tags and entities would be read."""
    return html.escape(cell(text) if not isinstance(text, str) else text, quote=False)


def labels(texts: Iterable[Any]) -> list[str]:
    """Return `label` of each."""
    return [label(text) for text in texts]


def _time(value: datetime) -> str:
    at = value.astimezone(UTC) if value.tzinfo else value
    return at.strftime("%Y-%m-%d %H:%M:%S") + (f".{at.microsecond // 1000:03d}" if at.microsecond else "")
