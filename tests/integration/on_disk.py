"""What the metadata directory of a controller holds, be the controller alive or not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quorate.snapshots.checkpoints.loading import load_image
from tests.waiting import eventually

_WRITTEN_S: Final = 60.0


async def until_topic_on_disk(directory: Path, name: str) -> None:
    """A change is acknowledged when a majority has it: one that a certain controller is to have is waited for."""

    async def is_there() -> bool:
        return name in load_image(directory).topics.by_name

    await eventually(is_there, f"topic {name} in {directory}", _WRITTEN_S)
