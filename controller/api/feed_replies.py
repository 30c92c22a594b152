"""The replies to `GET /v1/feed-sessions`."""

from __future__ import annotations

from quorate.controller.api.models import HttpModel


class FeedSessionReply(HttpModel):
    """The service to one reader of the feed, or to all that have no name. Counted since the session began."""

    broker_id: int | None
    """The broker, of several in one process the one with the smallest id; null: all readers without a name."""
    hosted_brokers: int
    """Brokers that the reading process plays; 0 for readers without a name."""
    remote_address: str | None
    """Where its last request came from."""
    opened_ms_ago: int
    last_seen_ms_ago: int
    """Time since it asked, or took bytes; 0 while it waits for news."""
    in_flight: int
    """Fetches under way: waiting for news, or being sent."""
    end_offset: int | None
    """Exclusive end of what it has, or what its connection has taken for it."""
    lag_records: int | None
    """Committed records behind that."""
    lag_bytes: int | None
    """Committed bytes behind that."""
    unsent_bytes: int
    """Of what is being sent to it: bytes that its connection has not taken."""
    sent_bytes: int
    sent_chunks: int
    queue_ms_average: float | None
    """Time from a commit until the connection had taken it, on average; null before there was any."""
    queue_ms_last: float | None
    """That time for what was sent last."""
    cut_off: int
    """How often it was let go because it did not read."""


class FeedSessionsReply(HttpModel):
    """The readers of one controller's feed."""

    observed_by: int
    """The controller that is read."""
    high_watermark: int
    sessions: list[FeedSessionReply]
    """Readers that are brokers, by id."""
    unnamed: FeedSessionReply
    """All others together."""
