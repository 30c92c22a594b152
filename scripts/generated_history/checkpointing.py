"""Checkpoints of a made-up history, with the code and the manifests of the real controllers."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.background.checkpoint_writer import manifest_of
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent, WriteCheckpointJob
from quorate.metadata_log.disk import RealDisk, drain
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.image_digest import EMPTY_DIGEST, digest_image
from quorate.snapshots.replay.replay_state import ReplayState


class Checkpointer:
    """Replays every batch and writes a checkpoint every so many records, at the next place where one may be."""

    def __init__(self, directory: Path, every: int) -> None:
        self.count = 0
        self._directory = directory
        self._every = every
        self._due = every
        self._state = ReplayState()
        self._digest = EMPTY_DIGEST

    def take(self, batch: bytes) -> None:
        """The next batch of the log."""
        self._state = self._state.replay_batch(batch)
        if self._state.end_offset >= self._due and not self._state.in_transaction:
            self._write(parse_header(batch).timestamp)
            self._due = (self._state.end_offset // self._every + 1) * self._every

    def _write(self, timestamp: int) -> None:
        image = self._state.stable
        self._digest = digest_image(image, self._digest)
        checkpoint = CheckpointId(image.provenance.end_offset, image.provenance.epoch)
        content = CheckpointContent(checkpoint_batches(image, timestamp), lambda: manifest_of(self._digest))
        drain(WriteCheckpointJob(RealDisk(), str(self._directory), checkpoint, content))
        self.count += 1
