"""The first content of a new node's log directory."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.controller.background.checkpoint_writer import manifest_of
from quorate.metadata_log.checkpoints.checkpoint_files import (
    CheckpointId,
    CheckpointInfo,
    checkpoint_name,
    manifest_name,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import encode_manifest
from quorate.metadata_log.directory.directory import ImportedFile
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image


@dataclass(frozen=True, slots=True)
class LogContent:
    """The files of a log directory, and their bytes together."""

    files: tuple[ImportedFile, ...]
    size: int

    def __add__(self, other: LogContent) -> LogContent:
        return LogContent(self.files + other.files, self.size + other.size)


def checkpoint_content(image: MetadataImage, timestamp_ms: int) -> LogContent:
    """A checkpoint of a state, and its manifest."""
    data = b"".join(checkpoint_batches(image, timestamp_ms))
    checkpoint = CheckpointId(image.provenance.end_offset, image.provenance.epoch)
    info = CheckpointInfo.of_bytes(checkpoint, data, image.provenance.log_time_ms)
    manifest = encode_manifest(manifest_of(digest_image(image)), info)
    files = (
        ImportedFile(manifest_name(checkpoint), lambda: [manifest]),
        ImportedFile(checkpoint_name(checkpoint), lambda: [data]),
    )
    return LogContent(files, len(manifest) + len(data))
