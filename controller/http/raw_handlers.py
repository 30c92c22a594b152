"""Answers that are no models: the metadata feed, checkpoints and metrics, as bytes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from aiohttp import web

from controller.http import headers
from controller.http.content import BATCHES, OCTETS
from controller.http.feed import Chunk, MetadataFeed
from controller.http.models import CheckpointParameters, FeedParameters, Nothing
from controller.http.ports import Node
from metadata_log.checkpoint_files import BOOTSTRAP_ID, CheckpointId, CheckpointInfo
from metadata_log.checkpoints import PositionOutOfRange, UnknownCheckpoint
from metadata_log.errors import ApiError, ErrorCode

#: A follower that does not take a chunk within this time is let go; it comes back where it was.
_SEND_SECONDS_MAX: Final = 30.0
METRICS_MEDIA: Final = "text/plain"
_METRICS_VERSION: Final = "0.0.4"


async def get_batches(node: Node, parameters: FeedParameters, request: web.Request) -> web.StreamResponse:
    feed = node.feed
    if parameters.stream:
        return await _stream(feed, parameters, request)
    chunk = await feed.fetch(parameters.offset, parameters.epoch, parameters.wait_ms, parameters.max_bytes)
    return web.Response(body=chunk.data, content_type=BATCHES, headers=_chunk_headers(feed, chunk))


async def _stream(feed: MetadataFeed, parameters: FeedParameters, request: web.Request) -> web.StreamResponse:
    async with aclosing(feed.stream(parameters.offset, parameters.epoch, parameters.max_bytes)) as chunks:
        first = await anext(chunks)
        answer = web.StreamResponse(headers=_chunk_headers(feed, first))
        answer.content_type = BATCHES
        await answer.prepare(request)
        try:
            await _send(answer, first)
            async for chunk in chunks:
                await _send(answer, chunk)
            await answer.write_eof()
        except (TimeoutError, ConnectionError):
            # The follower has gone, or does not read: nothing is owed to it, it asks again from where it stands.
            if request.transport is not None:
                request.transport.abort()
        return answer


async def _send(answer: web.StreamResponse, chunk: Chunk) -> None:
    if chunk.data:
        async with asyncio.timeout(_SEND_SECONDS_MAX):
            await answer.write(chunk.data)


def _chunk_headers(feed: MetadataFeed, chunk: Chunk) -> dict[str, str]:
    return {
        headers.LOG_START_OFFSET: str(feed.log_start_offset),
        headers.BASE_OFFSET: str(chunk.base_offset),
        headers.END_OFFSET: str(chunk.end_offset),
        headers.END_EPOCH: "" if chunk.end_epoch is None else str(chunk.end_epoch),
    }


async def get_checkpoint(node: Node, parameters: CheckpointParameters, request: web.Request) -> web.StreamResponse:
    info = _find(node, parameters)
    size = min(parameters.max_bytes, node.limits.chunk_bytes_max)
    try:
        chunk = await asyncio.to_thread(node.checkpoints.read_chunk, info.id, parameters.position, size)
    except PositionOutOfRange as error:
        raise ApiError(ErrorCode.POSITION_OUT_OF_RANGE, str(error)) from error
    except (UnknownCheckpoint, FileNotFoundError) as error:
        raise _not_found(info.id) from error  # removed while it was being read
    return web.Response(
        body=chunk.data,
        content_type=OCTETS,
        headers={
            headers.CHECKPOINT: f"{info.id.end_offset}-{info.id.epoch}",
            headers.CHECKPOINT_SIZE: str(info.size),
            headers.CHECKPOINT_POSITION: str(chunk.position),
            headers.CRC: f"{chunk.crc:08x}",
        },
    )


def _find(node: Node, parameters: CheckpointParameters) -> CheckpointInfo:
    if (parameters.end_offset is None) != (parameters.epoch is None):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "end_offset and epoch name a checkpoint together, or neither is given"
        )
    infos = {info.id: info for info in node.checkpoints.infos if info.id != BOOTSTRAP_ID}
    if parameters.end_offset is None or parameters.epoch is None:
        if not infos:
            raise ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, "this node has no checkpoint yet: its log begins at 0")
        return infos[max(infos)]
    wanted = CheckpointId(parameters.end_offset, parameters.epoch)
    if wanted not in infos:
        raise _not_found(wanted)
    return infos[wanted]


def _not_found(checkpoint: CheckpointId) -> ApiError:
    name = f"{checkpoint.end_offset}-{checkpoint.epoch}"
    return ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, f"there is no checkpoint {name} here: begin anew with the newest one")


async def get_metrics(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    # Imported by the first scrape: many processes are never scraped, and none while it starts.
    from controller.http.metrics import render_metrics

    answer = web.Response(body=await render_metrics(node))
    answer.headers["Content-Type"] = f"{METRICS_MEDIA}; version={_METRICS_VERSION}; charset=utf-8"
    return answer
