"""Handlers for checkpoints: list those of this node, and take one now."""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.controller.api.checkpoint_models import CheckpointReply, CheckpointsReply, TakenCheckpointReply
from quorate.controller.api.models import Nothing
from quorate.controller.background.checkpoint_writer import TakenCheckpoint
from quorate.controller.engine.interfaces import FutureReply
from quorate.controller.http.handlers.checkpoint_views import checkpoint_reply, checkpoints_with_state
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Call
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointInfo
from quorate.metadata_log.errors import ApiError, ErrorCode

#: Part of the client's time: whoever waits is told in time that the writing goes on.
_ANSWERED_BY: Final = 0.9


async def list_checkpoints(call: Call, parameters: Nothing, body: Nothing) -> CheckpointsReply:
    node = call.node
    return CheckpointsReply(
        node_id=node.node_id,
        applied_offset=node.controller.applied_offset,
        writing_offset=node.checkpoint_taking.writing_offset,
        checkpoints=await _replies(node, checkpoints_with_state(node.checkpoints)),
    )


async def take_checkpoint(call: Call, parameters: Nothing, body: Nothing) -> TakenCheckpointReply:
    node = call.node
    loop = asyncio.get_running_loop()
    begun = loop.time()
    future: asyncio.Future[TakenCheckpoint] = loop.create_future()
    node.checkpoint_taking.take(FutureReply(future))
    limit_ms = call.timeout_ms * _ANSWERED_BY
    try:
        async with asyncio.timeout(limit_ms / 1000):
            taken = await future
    except TimeoutError as error:
        message = f"the checkpoint is still being written after {limit_ms:.0f} ms, and goes on: see the list"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message) from error
    took_ms = round((loop.time() - begun) * 1000)
    infos = [info for info in checkpoints_with_state(node.checkpoints) if info.id.end_offset == taken.end_offset]
    if not infos:
        message = f"the checkpoint of offset {taken.end_offset} was replaced by a newer one: see the list"
        raise ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, message)
    (checkpoint,) = await _replies(node, infos[-1:])
    return TakenCheckpointReply(
        node_id=node.node_id, is_written=taken.is_written, took_ms=took_ms, checkpoint=checkpoint
    )


async def _replies(node: Node, infos: list[CheckpointInfo]) -> list[CheckpointReply]:
    return await asyncio.to_thread(lambda: [checkpoint_reply(node.checkpoints, info) for info in infos])
