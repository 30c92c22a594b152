"""The controllers' own replay, which an audit holds against the pipeline's: the two share no code."""

from __future__ import annotations

from pathlib import Path

from quorate.pipeline.jobs.other_states import Replayed
from quorate.scripts.terminal.passed_over import load_image_and_say
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.image_digest import digest_image


def controllers_replay(path: str, offset: int) -> Replayed:
    """The state before an offset; a damaged checkpoint that is passed over is named beside the output.

    Raises:
        ImageNotAvailable, StorageError, ReplayError: as ``load_image``.
    """
    image, _ = load_image_and_say(Path(path), Moment(offset=offset))
    return Replayed(digest_image(image).text, (record for record, _ in image_records(image)))
