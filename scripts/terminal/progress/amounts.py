"""Words for how much of how much is done, how fast it goes and how long it may take: the same everywhere."""

from __future__ import annotations

from typing import Final

#: Sooner a rate says nothing.
_RATE_FROM_S: Final = 1.0


def rate(done: int, total: int, seconds: float) -> str:
    """``, 31.2 a second, about 30 s left``: how fast things are done, and the rest; "" before that is known."""
    return _rate(done, total, seconds, "{:,.1f} a second")


def megabytes(done: int, total: int, seconds: float, limit: str = "") -> str:
    """``2.5 of 10.0 MB``, and the rate. ``limit``: before the total, as ``at most``, where less may be enough."""
    of = f"{done / 1e6:,.1f} of {limit}{' ' if limit else ''}{total / 1e6:,.1f} MB"
    return f"{of}{_rate(done, total, seconds, '{:,.1f} MB a second', unit=1e6)}"


def arrived(done: int, seconds: float) -> str:
    """``12.5 MB, 8.1 MB a second``, of what nobody knows the total of."""
    return f"{done / 1e6:,.1f} MB" + (f", {done / seconds / 1e6:,.1f} MB a second" if seconds >= _RATE_FROM_S else "")


def duration(seconds: float) -> str:
    """``45 s``, ``2 min 5 s``, ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def _rate(done: int, total: int, seconds: float, form: str, unit: float = 1.0) -> str:
    if done <= 0 or seconds < _RATE_FROM_S:
        return ""
    per_second = done / seconds
    left = f", about {duration((total - done) / per_second)} left" if done < total else ""
    return f", {form.format(per_second / unit)}{left}"
