"""Faults that a controller found on its own disk when it started: reported in its log and its status.

What is repaired by itself is said too: a disk that rots, or loses what it had promised, does so again.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from quorate.metadata_log.log.recovery_verdict import Damage
from quorate.metadata_log.log.segment_log import MetadataLog

log = structlog.get_logger()


class DiskFindings:
    """Of one start."""

    def __init__(self, damage: Sequence[Damage], state_damage: str | None, *, is_short_of_space: bool) -> None:
        """``damage``: of the log; ``state_damage``: of the election state, None where that could be read."""
        self._damage = damage
        self._state_damage = state_damage
        self._is_short_of_space = is_short_of_space

    def write_down(self, opened: MetadataLog, aside: Sequence[str]) -> None:
        """To the process's log. ``aside``: the names under which the damaged files are kept."""
        for damage in self._damage:
            log.warning("log.set_aside", why=str(damage))
        if aside:
            log.warning("log.no_vote", why="what is damaged is set aside: votes when it has caught up", kept_as=aside)
        if self._state_damage is not None:
            log.warning("election_state.damaged", why=self._state_damage)
        if (torn := opened.torn_tail) is not None:
            log.warning("log.torn_tail_cut", path=torn.path, position=torn.position, bytes=torn.size, why=torn.reason)
        for error in opened.checkpoints_at_open.damaged:
            log.warning("checkpoint.passed_over", why=str(error))
        if self._is_short_of_space:
            log.warning("disk.nearly_full")

    def sentences(self, *, is_voting: bool) -> list[str]:
        """The findings that are an alarm for as long as the process runs."""
        vote = "it votes again" if is_voting else "it does not vote yet"
        found = [f"its log was damaged and set aside ({damage}): {vote}" for damage in self._damage]
        if self._state_damage is not None:
            found.append(f"its election state could not be read ({self._state_damage}): {vote}")
        if self._is_short_of_space:
            found.append("its disk is nearly full: the node stops when it can write no more")
        return found
