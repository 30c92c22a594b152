"""Replies about the checkpoints of one controller. Every field is always present."""

from __future__ import annotations

from typing import Literal

from quorate.controller.api.models import HttpModel

ManifestState = Literal["whole", "none", "damaged"]


class CheckpointReply(HttpModel):
    """One checkpoint that the node can load and give away."""

    end_offset: int
    """(Exclusive) end of what it covers."""
    epoch: int
    """Epoch of the batch that ends there."""
    size: int
    """Bytes of the file."""
    last_record_ms: int
    """Time of the last record it covers, milliseconds since 1970."""
    manifest: ManifestState
    """Whether what its writer counted lies beside it: a checkpoint of Kafka has none, and is as good."""
    digest: str | None
    """Digest of the state it holds, 64 hexadecimal digits, by its manifest."""


class CheckpointsReply(HttpModel):
    """The checkpoints of the answering node, oldest first."""

    node_id: int
    applied_offset: int
    """End of what the node's state contains."""
    writing_offset: int | None
    """End offset of the one that is being written now."""
    checkpoints: list[CheckpointReply]


class TakenCheckpointReply(HttpModel):
    """A durable checkpoint that covers everything that the node had applied when it was asked."""

    node_id: int
    is_written: bool
    """Whether it was written for this request; if not, the newest one there covered everything already."""
    took_ms: int
    checkpoint: CheckpointReply
