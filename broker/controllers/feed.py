"""A broker's requests to one controller's metadata feed, and the checks on the answers.

A feed gives committed batches as they lie in the log. Nothing of it is believed: every batch's CRC, the continuity of
offsets and epochs, and the controller's own epoch are checked before anything is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quorate.metadata_log.batches.batch import BatchHeader, checked_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.errors import MalformedData, QuorateError
from quorate.metadata_log.records.wire import Buffer


class FeedUnavailable(QuorateError):
    """This controller cannot be asked now: not reachable, too slow, not serving. Another one may do."""


class FeedForbidden(FeedUnavailable):
    """This controller does not let this process read its log: a wrong secret or token, or a right that is missing."""


class UntrustworthyAnswer(QuorateError):
    """This controller answered what cannot be right: damaged or discontinuous batches, a lower epoch than was seen."""


class PositionRefused(QuorateError):
    """The controller's log does not continue from the follower's position: the follower takes the checkpoint.

    ``is_diverging``: the log holds another batch there. Otherwise it no longer reaches back that far.
    """

    def __init__(self, message: str, *, is_diverging: bool) -> None:
        super().__init__(message)
        self.is_diverging = is_diverging


class CheckpointGone(QuorateError):
    """The checkpoint that was being fetched is not kept any more (a newer one is), or there is none at all."""


class FeedPosition(NamedTuple):
    """The position of a follower: the (exclusive) end of what it has, and the epoch of the batch that ends there."""

    offset: int
    epoch: int


#: Before the first record.
LOG_BEGIN = FeedPosition(0, 0)


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """The part of every answer that is about the controller that made it."""

    node_id: int
    cluster_id: str
    #: None while it knows of no leader.
    leader_id: int | None
    #: The newest leader epoch it knows of.
    epoch: int
    #: Exclusive end of what it knows to be committed.
    high_watermark: int


@dataclass(frozen=True, slots=True)
class BatchesAnswer:
    """Whole batches, back to back, from the position asked for; empty if nothing came in time."""

    status: ControllerStatus
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckpointAnswer:
    """A piece of a checkpoint file."""

    status: ControllerStatus
    #: Bytes of the whole file.
    size: int
    chunk: CheckpointChunk


class FollowedFeed(Protocol):
    """The feed of one controller. Calls may be cancelled."""

    @property
    def name(self) -> str:
        """For logs: its URL."""

    async def fetch_batches(self, position: FeedPosition, wait_ms: int, bytes_max: int) -> BatchesAnswer:
        """Committed batches from ``position`` on; waits up to ``wait_ms`` for some.

        Raises:
            PositionRefused, FeedUnavailable, UntrustworthyAnswer.
        """

    async def fetch_checkpoint(self, wanted: CheckpointId | None, position: int, bytes_max: int) -> CheckpointAnswer:
        """A piece of one checkpoint, or of the newest one if ``wanted`` is None.

        Raises:
            CheckpointGone, FeedUnavailable, UntrustworthyAnswer.
        """


class CheckedBatch(NamedTuple):
    """A batch that is whole and continues the log."""

    #: Where it begins in the buffer.
    start: int
    header: BatchHeader


def check_batches(data: Buffer, position: FeedPosition, status: ControllerStatus) -> list[CheckedBatch]:
    """The batches in ``data``, which must continue the log from ``position``.

    Raises:
        UntrustworthyAnswer: a batch is damaged, an offset or epoch does not follow, or it is not committed.
    """
    batches: list[CheckedBatch] = []
    offset, epoch = position
    start = 0
    while start < len(data):
        try:
            header = checked_header(data, start)
        except MalformedData as error:
            raise UntrustworthyAnswer(
                f"the batch due at offset {offset}, byte {start} of the answer: {error}"
            ) from error
        if header.base_offset != offset:
            raise UntrustworthyAnswer(f"a batch begins at offset {header.base_offset} where {offset} is due")
        if not epoch <= header.epoch <= status.epoch:
            raise UntrustworthyAnswer(
                f"the batch at offset {offset} has epoch {header.epoch}, "
                f"not between {epoch} before it and {status.epoch} of controller {status.node_id}"
            )
        batches.append(CheckedBatch(start, header))
        offset, epoch = header.end_offset, header.epoch
        start += header.size
    if offset > status.high_watermark and batches:
        raise UntrustworthyAnswer(
            f"batches up to offset {offset} were sent, but only those below {status.high_watermark} are committed"
        )
    return batches
