"""Answers that are no models: the metadata feed, checkpoints and metrics, as bytes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from importlib import import_module
from typing import Final

from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.content import BATCHES, OCTETS
from quorate.controller.api.errors import status_of
from quorate.controller.api.models import CheckpointParameters, FeedParameters, Nothing
from quorate.controller.connections.framework_connection import connection_of
from quorate.controller.decisions.origin import ORIGIN
from quorate.controller.feed.feed import FeedChunk
from quorate.controller.feed.sending import ChunkSender, chunk_headers
from quorate.controller.feed.sessions import Reader
from quorate.controller.http.callers import STANDING, rights_here
from quorate.controller.http.dispatch import COUNTS_KEY, REQUEST_ID
from quorate.controller.http.ports import Node
from quorate.controller.identity.other_ends import address_of
from quorate.controller.logs.refusals import asked_by
from quorate.controller.permissions.permission import OnCluster, Permission
from quorate.controller.permissions.rights import Rights
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.checkpoints import PositionOutOfRange, UnknownCheckpoint
from quorate.metadata_log.errors import ApiError, CorruptCheckpoint, ErrorCode

#: As Kafka asks of whoever fetches its metadata log. Nothing of the log can be left out: it is read as it lies on disk.
WHOLE_LOG: Final = OnCluster(
    "CLUSTER_ACTION", why="the metadata log holds all topics, configs and credentials, and is read whole or not at all"
)
METRICS_MEDIA: Final = "text/plain"
_METRICS_VERSION: Final = "0.0.4"


async def get_batches(node: Node, parameters: FeedParameters, request: web.Request) -> web.StreamResponse:
    feed, rights = node.feed, rights_here(node)
    if parameters.broker_id is not None:
        rights.need_node("broker", parameters.broker_id)
    place = rights.bounded_principal
    reader = Reader(parameters.broker_id, parameters.hosted_brokers, _peer_address(request))
    with feed.sessions.serving(reader, parameters.offset) as session:
        sender = ChunkSender(feed, session, request)
        if parameters.stream:
            if parameters.past:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "past and stream exclude each other: a stream is for followers"
                )
            return await _stream(node, parameters, request, sender, place)
        # Sent inside of the fetch: a follower that does not read counts as one until it is cut off.
        async with feed.fetching(
            parameters.offset,
            parameters.epoch,
            parameters.wait_ms,
            parameters.max_bytes,
            is_past=parameters.past,
            reader=place,
        ) as found:
            STANDING.get().check(_need_log)
            offset = parameters.offset
            # Whoever may go on asks again, on another connection.
            nothing = FeedChunk(b"", offset, offset, None, is_cut=False)
            return await sender.answer(nothing if _is_leaving(request) else found)


def _need_log(rights: Rights) -> None:
    WHOLE_LOG.check(rights, None)


def _peer_address(request: web.Request) -> str:
    peer = None if request.transport is None else request.transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if peer else address_of(request)  # a Unix socket has no port


async def _stream(
    node: Node, parameters: FeedParameters, request: web.Request, sender: ChunkSender, place: str | None
) -> web.StreamResponse:
    feed = node.feed
    async with aclosing(feed.stream(parameters.offset, parameters.epoch, parameters.max_bytes, place)) as chunks:
        first = await anext(chunks)
        answer = web.StreamResponse(headers=chunk_headers(feed, first))
        answer.content_type = BATCHES
        await answer.prepare(request)
        is_reading = await sender.send(answer, first)
        while is_reading:
            chunk = await anext(chunks, None)
            if chunk is None or not still_stands(node, request, WHOLE_LOG):
                await answer.write_eof()
                break
            is_reading = await sender.send(answer, chunk)
        return answer


def _is_leaving(request: web.Request) -> bool:
    """Whether the connection has lost the right that it was made by, and ends behind this answer."""
    connection = connection_of(request)
    return connection is not None and connection.is_leaving


def still_stands(node: Node, request: web.Request, permission: Permission) -> bool:
    """Whether a stream may go on. Its reader is told why not when it asks again; here it is written down."""
    if _is_leaving(request):
        return False
    try:
        STANDING.get().check(partial(permission.check, body=None))
    except ApiError as error:
        request_id = REQUEST_ID.get()
        node.refusals.note(asked_by(request, ORIGIN.get(), request_id), error, status_of(error))
        return False
    return True


async def get_checkpoint(node: Node, parameters: CheckpointParameters, request: web.Request) -> web.StreamResponse:
    info = _find(node, parameters)
    size = min(parameters.max_bytes, node.limits.chunk_bytes_max)
    try:
        chunk = await asyncio.to_thread(node.checkpoints.read_chunk, info.id, parameters.position, size)
    except PositionOutOfRange as error:
        raise ApiError(ErrorCode.POSITION_OUT_OF_RANGE, str(error)) from error
    except (UnknownCheckpoint, FileNotFoundError) as error:
        raise _not_found(info.id) from error  # removed while it was being read
    except CorruptCheckpoint as error:
        name = f"{info.id.end_offset}-{info.id.epoch}"
        message = f"checkpoint {name} is damaged on the disk of node {node.node_id}: take one from another controller"
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
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
    return ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, f"there is no checkpoint {name} here: start over with the newest one")


async def get_metrics(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    # Loaded by the first scrape, while the loop serves others: many processes are never scraped, and none while it
    # starts.
    await asyncio.to_thread(import_module, "quorate.controller.http.handlers.metrics")
    from quorate.controller.http.handlers.metrics import render_metrics

    answer = web.Response(body=await render_metrics(node, request.app[COUNTS_KEY]))
    answer.headers["Content-Type"] = f"{METRICS_MEDIA}; version={_METRICS_VERSION}; charset=utf-8"
    return answer
