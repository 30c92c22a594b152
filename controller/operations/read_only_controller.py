"""A controller that stands still: a standby that was given one image and never hears of another.

Whatever reads of a controller reads an old state, or that of a file, by the same code. Writes are refused as by any
standby that knows of no active controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import ControllerLimits
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.metadata_log.errors import NotController
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

#: It decides nothing, so nothing of it waits for a turn or a commit.
_LIMITS: Final = ControllerLimits(queue_length_max=1, uncommitted_bytes_max=0)


def still_controller(image: MetadataImage, node_id: int) -> QuorumController:
    """A controller whose committed state is the image, on the running loop."""
    end_offset = image.provenance.end_offset
    quorum = _NoQuorum(end_offset)
    controller = QuorumController(node_id, quorum, _NoRole(), LoopScheduler(_NoFaults()), _NoFaults(), _LIMITS)
    controller.on_snapshot(ReplayState(image), end_offset)
    return controller


class _NoQuorum:
    """``controller.engine.interfaces.Quorum`` of nobody."""

    leader_id = None

    def __init__(self, log_end_offset: int) -> None:
        self.log_end_offset = log_end_offset

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        raise NotController(None)

    def resign(self, epoch: int) -> None:
        """It never led."""

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        raise NotController(None)


class _NoRole:
    """``controller.engine.interfaces.Role`` of who is never active."""

    def activation(self, state: ReplayState) -> Decision[None]:
        raise AssertionError("it is never elected")

    def activated(self) -> None:
        raise AssertionError("it is never elected")

    def renounced(self) -> None:
        raise AssertionError("it is never elected")


class _NoFaults:
    """``controller.engine.faults.FaultHandler``: nothing happens that could go wrong."""

    def fault(self, what: str, error: Exception) -> None:
        self.fatal(what, error)

    def fatal(self, what: str, error: Exception) -> NoReturn:
        raise AssertionError(what) from error
