"""One incident, and the words that it is told in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


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
    """A duration for people."""
    seconds = time.total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def in_words(milliseconds: int) -> str:
    """A duration in milliseconds for people."""
    return lasting(timedelta(milliseconds=milliseconds))


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def or_unknown(node: int | None) -> str:
    return "an unknown one" if node is None else str(node)
