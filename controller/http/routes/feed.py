"""`GET /v1/feed-sessions`: who reads the asked controller's feed."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.feed_replies import FeedSessionReply, FeedSessionsReply
from quorate.controller.api.models import Nothing
from quorate.controller.feed.feed import MetadataFeed
from quorate.controller.feed.sessions import FeedSession
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Call, Route, Serving, route
from quorate.controller.permissions.permission import OnCluster


async def list_feed_sessions(call: Call, parameters: Nothing, body: Nothing) -> FeedSessionsReply:
    return feed_sessions_reply(call.node)


def feed_sessions_reply(node: Node) -> FeedSessionsReply:
    """As of now."""
    feed = node.feed
    return FeedSessionsReply(
        observed_by=node.node_id,
        high_watermark=feed.high_watermark,
        sessions=[_session_reply(feed, session) for session in feed.sessions.named()],
        unnamed=_session_reply(feed, feed.sessions.unnamed),
    )


def _session_reply(feed: MetadataFeed, session: FeedSession) -> FeedSessionReply:
    now = feed.sessions.now()
    is_named = session.reader.broker_id is not None
    waited = session.queue_count > 0
    return FeedSessionReply(
        broker_id=session.reader.broker_id,
        hosted_brokers=session.reader.hosted_brokers if is_named else 0,
        remote_address=session.reader.address if is_named else None,
        opened_ms_ago=int((now - session.opened_at) * 1000),
        last_seen_ms_ago=int(session.silent_seconds(now) * 1000),
        in_flight=session.in_flight,
        end_offset=session.position if is_named else None,
        lag_records=feed.records_behind(session.position) if is_named else None,
        lag_bytes=feed.bytes_behind(session.position) if is_named else None,
        unsent_bytes=session.unsent_bytes,
        sent_bytes=session.bytes_sent,
        sent_chunks=session.chunks_sent,
        queue_ms_average=1000 * session.queue_seconds / session.queue_count if waited else None,
        queue_ms_last=1000 * session.queue_seconds_last if waited else None,
        cut_off=session.cut_off,
    )


FEED_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/feed-sessions",
        "Who reads this controller's metadata feed: lag, bytes and time in the queue of each broker process",
        list_feed_sessions,
        tag="metadata feed",
        permission=OnCluster("DESCRIBE"),
        parameters=Nothing,
        body=Nothing,
        reply=FeedSessionsReply,
        serving=Serving.HERE,
    ),
)
