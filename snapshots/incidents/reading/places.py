"""The place of a record in a log's history."""

from __future__ import annotations

from typing import NamedTuple


class RecordPlace(NamedTuple):
    """The record from which on something holds, and the time of its batch in microseconds since 1970."""

    offset: int
    time_us: int
