"""The client's requests about the checkpoints of one controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.controller.api.checkpoint_models import CheckpointsReply, TakenCheckpointReply
from quorate.controller.client.connection import Connection, Request
from quorate.metadata_log.arguments import checked_calls

_PATH: Final = "/v1/checkpoints"


@checked_calls
class CheckpointClient:
    """A part of ``client.client.ControllerClient``. Each controller has checkpoints of its own: it is named."""

    def __init__(self, connect: Callable[[str], Connection], timeout_ms: float) -> None:
        self._connect = connect
        self._timeout_ms = timeout_ms

    async def list(self, url: str) -> CheckpointsReply:
        """The checkpoints of one controller.

        Raises:
            ApiError, NotSent, NoAnswer: this controller does not serve now.
        """
        answer = await self._connect(url).send(Request("GET", _PATH, self._timeout_ms))
        return answer.model(CheckpointsReply)

    async def take(self, url: str) -> TakenCheckpointReply:
        """Let one controller take a checkpoint; answered when it is durable. Taking one twice does no harm.

        Raises:
            ApiError: OPERATION_NOT_ATTEMPTED, none can be taken as things are; THROTTLING_QUOTA_EXCEEDED, one is being
                written; REQUEST_TIMED_OUT, it is still being written. NotSent, NoAnswer: as ``list``.
        """
        answer = await self._connect(url).send(Request("POST", _PATH, self._timeout_ms))
        return answer.model(TakenCheckpointReply)
