"""One incident, and the words that it is told in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

#: For a duration: its end is earlier than its begin.
_SET_BACK: Final = "a time that nobody knows (the clock was set back)"


@dataclass(slots=True)
class Incident:
    """One thing that went wrong, or that changed very much at once."""

    cluster_id: str
    kind: str
    #: First record that belongs to it.
    from_offset: int
    begin: datetime
    #: What ended it; None: it is open, or has no length.
    to_offset: int | None
    end: datetime | None
    is_open: bool
    brokers: tuple[int, ...]
    partitions: int
    #: Why, in a word that programs may compare, and the record that says so.
    cause: str
    cause_offset: int | None
    text: str
    details: dict[str, Any] = field(default_factory=dict)


def lasting(time: timedelta) -> str:
    """A duration for people; no length where the clock was set back meanwhile."""
    return _in_words(time.total_seconds())


def in_words(milliseconds: int) -> str:
    """The same of milliseconds, of which many partitions together may have more than a ``timedelta`` holds."""
    return _in_words(milliseconds / 1000)


def at_most(milliseconds: int) -> str:
    """A longest duration for people."""
    return in_words(milliseconds) if milliseconds < 0 else f"at most {in_words(milliseconds)}"


def _in_words(seconds: float) -> str:
    if seconds < 0:
        return _SET_BACK
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:,.1f} h"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def controller_named(node: int | None) -> str:
    return "a controller that the log does not name" if node is None else f"controller {node}"


def took_over(new: int | None, old: int | None) -> str:
    return f"{controller_named(new)} took over from {controller_named(None) if old is None else old}"
