"""Chunks of the feed on their way into sockets: piece by piece, so that who does not read holds little memory.

Each follower has one chunk under way, which it shares with all that stand at the same place, and one piece of it in its
connection. Followers that stand apart and do not read could still hold a chunk each: beyond a limit on what is under
way, new chunks are small (``MetadataFeed``).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.content import BATCHES
from quorate.controller.feed.feed import FeedChunk, MetadataFeed
from quorate.controller.feed.sessions import FeedSession

#: A follower that takes nothing of a piece within this time is let go; it comes back where it was.
SEND_SECONDS_MAX: Final = 30.0
#: Bytes given to a connection at once: more than a transport buffers before it asks to wait, so every piece waits.
PIECE_BYTES: Final = 128 * 1024


class ChunkSender:
    """Sends chunks to one follower, and keeps its session's books."""

    def __init__(self, feed: MetadataFeed, session: FeedSession, request: web.Request) -> None:
        self._feed = feed
        self._session = session
        self._request = request

    async def answer(self, chunk: FeedChunk) -> web.StreamResponse:
        """One chunk as a whole answer, until the connection has taken it or is given up."""
        answer: web.StreamResponse
        if len(chunk.data) > PIECE_BYTES:
            answer = web.StreamResponse(headers=chunk_headers(self._feed, chunk))
            answer.content_type = BATCHES
            answer.content_length = len(chunk.data)
            await answer.prepare(self._request)
            if await self.send(answer, chunk):
                await answer.write_eof()
        else:
            # Head and body leave in one write.
            answer = web.Response(body=chunk.data, headers=chunk_headers(self._feed, chunk))
            answer.content_type = BATCHES
            await answer.prepare(self._request)
            await self._send(answer, chunk, is_body=True)
        return answer

    async def send(self, answer: web.StreamResponse, chunk: FeedChunk) -> bool:
        """A chunk as a part of an answer. False: the follower has gone, or does not read, and the connection is ended.

        Nothing is owed to it: it asks again from where it stands.
        """
        return await self._send(answer, chunk, is_body=False)

    async def _send(self, answer: web.StreamResponse, chunk: FeedChunk, *, is_body: bool) -> bool:
        sessions, session, size = self._feed.sessions, self._session, len(chunk.data)
        left = size
        is_cut_off = False
        sessions.begin_chunk(session, size)
        try:
            with self._feed.under_way.holding(chunk):
                if is_body:
                    async with asyncio.timeout(SEND_SECONDS_MAX):
                        await answer.write_eof()
                    left = 0
                    sessions.took(session, size)
                while left:
                    piece = memoryview(chunk.data)[size - left :][:PIECE_BYTES]
                    async with asyncio.timeout(SEND_SECONDS_MAX):
                        await answer.write(piece)
                    left -= len(piece)
                    sessions.took(session, len(piece))
        except (TimeoutError, ConnectionError) as error:
            is_cut_off = isinstance(error, TimeoutError)
            if self._request.transport is not None:
                self._request.transport.abort()
            return False
        finally:
            sessions.gave_up(session, left, is_cut_off=is_cut_off)
        if size:
            sessions.sent(session, chunk.base_offset, chunk.end_offset)
        return True


def chunk_headers(feed: MetadataFeed, chunk: FeedChunk) -> dict[str, str]:
    """The headers of an answer about its (first) chunk."""
    return {
        headers.LOG_START_OFFSET: str(feed.log_start_offset),
        headers.BASE_OFFSET: str(chunk.base_offset),
        headers.END_OFFSET: str(chunk.end_offset),
        headers.END_EPOCH: "" if chunk.end_epoch is None else str(chunk.end_epoch),
    }
