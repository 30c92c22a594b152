"""Shared by the threads of a process that work on its state beside the loop: the checkpoint writer's and digests'."""

from __future__ import annotations

from typing import Final

from quorate.controller.background.checkpoint_pace import WorkShare
from quorate.snapshots.digest_memory import DigestMemory

#: Of the comparison with other controllers, which wait for it: a million partitions take some 5 s, the first time.
_DIGEST_WORK_PERCENT: Final = 25
#: Records that commit together from which on they are a mass change, as where a broker is lost.
MASS_RECORDS: Final = 4_096


class SharedWork:
    """One per process."""

    def __init__(self, checkpoint_work_percent: int) -> None:
        self.digests = DigestMemory()
        self.checkpoint_pace = WorkShare(checkpoint_work_percent)
        self.digest_pace = WorkShare(_DIGEST_WORK_PERCENT)
        self._end_offset = 0

    def moved(self, end_offset: int) -> None:
        """The committed state ends here now: who works beside a mass change gives way to it. Called by the loop."""
        if end_offset - self._end_offset >= MASS_RECORDS:
            self.checkpoint_pace.give_way()
            self.digest_pace.give_way()
        self._end_offset = end_offset

    def close(self) -> None:
        """No more pauses: the process wants to end."""
        self.checkpoint_pace.close()
        self.digest_pace.close()
