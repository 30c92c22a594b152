"""The feed's sessions as metrics: what Kafka's older controller had for each broker's queue.

By broker, but for the histogram of times, which would be some twenty series each: there a broker has sum and count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client.core import Metric, SummaryMetricFamily

from quorate.controller.engine.counters import Histogram
from quorate.controller.feed.feed import MetadataFeed
from quorate.controller.feed.sessions import FeedSession
from quorate.controller.http.families import counter, counters, gauge, gauges, histogram

#: Label of all readers that have no session of their own.
UNNAMED: Final = "unnamed"
#: Sessions that one turn of the loop looks at.
_ROWS_AT_ONCE: Final = 200


class SessionRow(NamedTuple):
    """One session, as of the scrape."""

    label: str
    hosted_brokers: int
    #: None: they stand at many places.
    lag_records: int | None
    lag_bytes: int | None
    in_flight: int
    unsent_bytes: int
    silent_seconds: float
    bytes_sent: int
    chunks_sent: int
    cut_off: int
    queue_count: int
    queue_seconds: float


@dataclass(frozen=True, slots=True)
class FeedScrape:
    """The feed, as of the scrape."""

    followers: int
    chunks_read: int
    bytes_under_way: int
    queue_times: Histogram
    sessions: Sequence[SessionRow]
    unnamed: SessionRow


async def scrape_feed(feed: MetadataFeed) -> FeedScrape:
    """Some 5 to 10 us of the loop a session, in pieces."""
    now = feed.sessions.now()
    rows = []
    for session in feed.sessions.named():
        rows.append(_row(feed, session, now))
        if len(rows) % _ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return FeedScrape(
        followers=feed.followers,
        chunks_read=feed.chunks_read,
        bytes_under_way=feed.under_way.bytes,
        queue_times=feed.sessions.queue_times.copy(),
        sessions=rows,
        unnamed=_row(feed, feed.sessions.unnamed, now),
    )


def _row(feed: MetadataFeed, session: FeedSession, now: float) -> SessionRow:
    broker_id = session.reader.broker_id
    is_named = broker_id is not None
    return SessionRow(
        str(broker_id) if is_named else UNNAMED,
        session.reader.hosted_brokers,
        feed.records_behind(session.position) if is_named else None,
        feed.bytes_behind(session.position) if is_named else None,
        session.in_flight,
        session.unsent_bytes,
        session.silent_seconds(now),
        session.bytes_sent,
        session.chunks_sent,
        session.cut_off,
        session.queue_count,
        session.queue_seconds,
    )


def feed_metrics(scrape: FeedScrape) -> Iterator[Metric]:
    """All of them."""
    named, every = scrape.sessions, [*scrape.sessions, scrape.unnamed]
    yield gauge("feed_followers", "Fetches of the metadata feed that wait, stream or are being sent.", scrape.followers)
    yield counter("feed_chunks_read", "Pieces of the log read for followers; each may go to many.", scrape.chunks_read)
    yield gauge("feed_under_way_bytes", "Bytes of chunks that are being sent; shared ones once.",
                scrape.bytes_under_way)  # fmt: skip
    yield histogram("feed_queue_time_seconds", "QueueTimeMs: from a commit until a reader's connection had taken it.",
                    scrape.queue_times)  # fmt: skip
    yield gauge("feed_sessions", "Sessions: broker processes that read this controller's feed.", len(named))
    yield gauges("feed_session_hosted_brokers", "Brokers of a reading process, named after the first of them.",
                 "broker", [(row.label, row.hosted_brokers) for row in named])  # fmt: skip
    yield gauges("feed_session_lag_records", "QueueSize: committed records that a reader has not had.", "broker",
                 [(row.label, row.lag_records or 0) for row in named])  # fmt: skip
    yield gauges("feed_session_lag_bytes", "Committed bytes that a reader has not had.", "broker",
                 [(row.label, row.lag_bytes or 0) for row in named])  # fmt: skip
    yield gauges("feed_session_silent_seconds", "Time since a reader asked or took bytes; 0 while it waits for news.",
                 "broker", [(row.label, row.silent_seconds) for row in named])  # fmt: skip
    yield gauges("feed_session_in_flight", "Fetches of a reader that wait, stream or are being sent.", "broker",
                 [(row.label, row.in_flight) for row in every])  # fmt: skip
    yield gauges("feed_session_unsent_bytes", "Of what is being sent: bytes that the connection has not taken.",
                 "broker", [(row.label, row.unsent_bytes) for row in every])  # fmt: skip
    yield counters("feed_session_sent_bytes", "Bytes that a reader's connection has taken.", "broker",
                   [(row.label, row.bytes_sent) for row in every])  # fmt: skip
    yield counters("feed_session_sent_chunks", "RequestRate: chunks that a reader's connection has taken.", "broker",
                   [(row.label, row.chunks_sent) for row in every])  # fmt: skip
    yield counters("feed_session_cut_off", "Times that a reader was let go because it did not read.", "broker",
                   [(row.label, row.cut_off) for row in every])  # fmt: skip
    text = "QueueTimeMs: from a commit until the connection had taken it, as sum and count."
    times = SummaryMetricFamily("quorate_feed_session_queue_time_seconds", text, labels=["broker"])
    for row in every:
        times.add_metric([row.label], row.queue_count, row.queue_seconds)
    yield times
