"""Shared by the threads of a process that work on its state beside the loop: the checkpoint writer's and digests'."""

from __future__ import annotations

from typing import Final

from quorate.controller.background.checkpoint_pace import WorkShare
from quorate.controller.background.digest_memory import DigestMemory

#: Of the comparison with other controllers, which wait for it: a million partitions take some 5 s, the first time.
_DIGEST_WORK_PERCENT: Final = 25


class SharedWork:
    """One per process."""

    def __init__(self, checkpoint_work_percent: int) -> None:
        self.digests = DigestMemory()
        self.checkpoint_pace = WorkShare(checkpoint_work_percent)
        self.digest_pace = WorkShare(_DIGEST_WORK_PERCENT)

    def close(self) -> None:
        """No more pauses: the process wants to end."""
        self.checkpoint_pace.close()
        self.digest_pace.close()
