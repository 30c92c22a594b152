"""Refuses one more request where too much waits already: for its commit, or for a leader that is sure of itself."""

from __future__ import annotations

from quorate.controller.engine.findings import Findings
from quorate.controller.engine.head import Head
from quorate.controller.engine.interfaces import ControllerLimits
from quorate.metadata_log.errors import Overloaded


def require_room(head: Head | None, findings: Findings, limits: ControllerLimits) -> None:
    """Refuse a request that nothing was done about.

    Raises:
        Overloaded: too much waits already.
    """
    if head is not None and head.uncommitted_bytes > limits.uncommitted_bytes_max:
        waiting, most = head.uncommitted_bytes, limits.uncommitted_bytes_max
        raise Overloaded(f"{waiting} bytes wait for their commit, {most} is the most", "uncommitted_bytes")
    if len(findings) >= limits.queue_length_max:
        message = f"{len(findings)} answers wait until leadership is confirmed: no more may"
        raise Overloaded(message, "unconfirmed_answers")
