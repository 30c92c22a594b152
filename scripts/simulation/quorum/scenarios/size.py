"""Named scenarios of entries as large as they may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage
from quorate.scripts.simulation.quorum.world import LARGEST_FILLER_BYTES

_OPTIONS: Final = replace(QUIET, is_stream=True, resident_bytes=0)
_WRITES: Final = 2


def largest_entries(seed: int) -> None:
    """Entries of the largest size are committed, brought to a follower that was away, and read after a restart."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    stage.crash(2)
    filler = bytes(LARGEST_FILLER_BYTES)
    stage.claim(stage.world.write(stage.nodes[0], filler + b"x") is None, "an entry over the limit was taken")
    for _ in range(_WRITES):
        end = stage.world.write(stage.nodes[0], filler)
        stage.claim(end is not None, "an entry at the limit was refused")
        stage.wait("it to be acknowledged", lambda end=end: end in stage.world.checks.acknowledged)  # type: ignore[misc]
    stage.restart(2)
    stage.wait("the follower", lambda: stage.nodes[2].node is not None and stage.end_of(2) == stage.end_of(0))
    stage.crash(0)
    stage.restart(0)
    stage.finish()


SIZE_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {"largest-entries": largest_entries}
