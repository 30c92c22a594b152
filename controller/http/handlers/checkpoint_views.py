"""Descriptions of checkpoint files: a controller's own, and those in a directory that a command reads."""

from __future__ import annotations

from quorate.controller.api.checkpoint_models import CheckpointReply, ManifestState
from quorate.controller.reads.past import Checkpoints
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointInfo
from quorate.metadata_log.errors import CorruptState


def checkpoints_with_state(checkpoints: Checkpoints) -> list[CheckpointInfo]:
    """The checkpoints but for the bootstrap one, which holds no state."""
    return [info for info in checkpoints.infos if info.id != BOOTSTRAP_ID]


def checkpoint_reply(checkpoints: Checkpoints, info: CheckpointInfo) -> CheckpointReply:
    """One checkpoint. Reads its manifest: not on a loop's thread."""
    state: ManifestState = "none"
    digest = None
    try:
        manifest = checkpoints.manifest(info.id)
        if manifest is not None:
            state, digest = "whole", manifest.digest.hex()
    except CorruptState:
        state = "damaged"
    except FileNotFoundError:
        pass  # removed while it was being looked at
    return CheckpointReply(
        end_offset=info.id.end_offset,
        epoch=info.id.epoch,
        size=info.size,
        last_record_ms=info.last_contained_timestamp,
        manifest=state,
        digest=digest,
    )
