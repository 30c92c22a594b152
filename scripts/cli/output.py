"""How values are shown to people, the same in every command."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(timestamp_ms: int) -> str:
    """A time in milliseconds since 1970, as ISO 8601 in UTC; the bare number where no calendar reaches."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
