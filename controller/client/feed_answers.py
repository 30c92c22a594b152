"""The questions that a client asks the metadata feed, and its answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from quorate.controller.api import headers
from quorate.controller.client.connection import Answer, NoAnswer, NodeState, Request

#: Beyond the time a server is given to answer a long poll: not a byte for so long, and, if some come, not all of them.
_POLL_GRACE_MS: Final = 1_000.0
_POLL_MS_MAX: Final = 60_000.0


@dataclass(frozen=True, slots=True)
class Batches:
    """Committed batches of the metadata feed, as they lie in the log."""

    node: NodeState
    data: bytes
    base_offset: int
    #: Exclusive: the next offset to ask for.
    end_offset: int
    #: Epoch of the last batch; None where there is none.
    end_epoch: int | None
    log_start_offset: int


@dataclass(frozen=True, slots=True)
class CheckpointPiece:
    """A piece of a checkpoint file."""

    node: NodeState
    #: Exclusive end, and epoch of the last batch, of what the checkpoint covers.
    end_offset: int
    epoch: int
    #: Bytes of the whole file.
    size: int
    position: int
    data: bytes
    #: CRC-32C of ``data``, as the sender computed it.
    crc: int


def batches_request(
    offset: int, epoch: int, wait_ms: int, max_bytes: int, broker_ids: Collection[int], *, is_past: bool
) -> Request:
    """See ``ControllerClient.fetch_batches``."""
    parameters: dict[str, str | int] = {"offset": offset, "epoch": epoch, "wait_ms": wait_ms, "max_bytes": max_bytes}
    if broker_ids:
        parameters |= {"broker_id": min(broker_ids), "hosted_brokers": len(broker_ids)}
    if is_past:
        parameters["past"] = "true"
    silence_ms = wait_ms + _POLL_GRACE_MS
    return Request("GET", "/v1/metadata/batches", silence_ms + _POLL_MS_MAX, parameters, silence_ms=silence_ms)


def batches(answer: Answer) -> Batches:
    """Batches and what the headers say of them.

    Raises:
        NoAnswer: the headers are not those of the feed.
    """
    return Batches(
        node=answer.node_state(),
        data=answer.data,
        base_offset=answer.number(headers.BASE_OFFSET),
        end_offset=answer.number(headers.END_OFFSET),
        end_epoch=answer.number(headers.END_EPOCH) if answer.headers.get(headers.END_EPOCH) else None,
        log_start_offset=answer.number(headers.LOG_START_OFFSET),
    )


def checkpoint_piece(answer: Answer) -> CheckpointPiece:
    """A piece and what the headers say of it.

    Raises:
        NoAnswer: the headers are not those of a checkpoint.
    """
    end_offset, _, epoch = answer.headers.get(headers.CHECKPOINT, "").partition("-")
    crc = answer.headers.get(headers.CRC, "")
    try:
        return CheckpointPiece(
            node=answer.node_state(),
            end_offset=int(end_offset),
            epoch=int(epoch),
            size=answer.number(headers.CHECKPOINT_SIZE),
            position=answer.number(headers.CHECKPOINT_POSITION),
            data=answer.data,
            crc=int(crc, 16),
        )
    except ValueError as error:
        raise NoAnswer(f"the answer's headers name no checkpoint: {error}") from error
