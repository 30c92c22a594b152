"""Retention of checkpoints, and of the log before them. Rules: Kafka's ``KafkaMetadataLog``.

With a checkpoint goes the log up to the next one, so the time of the next one says how old the newest record is that
goes. Kafka looks at that of the checkpoint itself, and after days without records lets go of those of the last hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """Kafka's names: ``metadata.max.retention.bytes`` and ``.ms``."""

    #: Bytes of segments and checkpoints together.
    max_retention_bytes: int
    #: Age of the newest record that would go.
    max_retention_ms: int


def superseded(
    checkpoints: Sequence[CheckpointInfo], segments: Sequence[tuple[int, int]], now_ms: int, config: RetentionConfig
) -> list[CheckpointId]:
    """Checkpoints to remove, oldest first; the newest always stays. ``checkpoints`` and ``segments`` ascend.

    The log may then begin where the oldest one kept ends: ``MetadataLog.delete_prefix``.
    """
    total = sum(info.size for info in checkpoints) + sum(size for _, size in segments)
    removed = []
    for info, following in pairwise(checkpoints):
        is_old = now_ms - following.last_contained_timestamp > config.max_retention_ms
        if total <= config.max_retention_bytes and not is_old:
            break
        removed.append(info.id)
        total -= info.size + _segment_bytes(segments, info.id.end_offset, following.id.end_offset)
    return removed


def _segment_bytes(segments: Sequence[tuple[int, int]], low: int, high: int) -> int:
    """Bytes of the segments that end within (low, high]. The newest has no end yet."""
    ends = pairwise(segments)
    return sum(size for (_, size), (end, _) in ends if low < end <= high)
