"""Counts of a node's committed state, for status and metrics: one count at a time, off the loop."""

from __future__ import annotations

import asyncio
from functools import partial

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.image_counts import Counted, count_image
from quorate.controller.reads.read_turns import run_in_turn
from quorate.snapshots.image.image import MetadataImage


class CountedImages:
    """Of one node."""

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self._lock = asyncio.Lock()

    async def count(self, image: MetadataImage) -> Counted:
        """The counts of an image. An image is a value: another thread may read it."""
        return await run_in_turn(partial(count_image, image, self._config), self._lock)
