"""Wall clocks that are wrong: times in the log do not fall for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

_HOUR_MS: Final = 3_600_000


def clock_ahead_at_an_election(seed: int) -> None:
    """The leader's clock is an hour ahead when it dies; its successor's is right, and the log's time goes on."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.nodes[0].clock_ahead_ms = _HOUR_MS
    stage.write_acknowledged(0)
    _succeed(stage)


def clock_ahead_at_an_election_behind_a_checkpoint(seed: int) -> None:
    """The same, and the successor's log begins with a checkpoint, behind which nothing lies."""
    stage = QuorumStage(seed, options=replace(QUIET, retention_bytes=0, segment_bytes=500))
    stage.lead(0)
    stage.crash(1)
    stage.nodes[0].clock_ahead_ms = _HOUR_MS
    for _ in range(25):
        stage.write_acknowledged(0)
    for _ in range(2):
        stage.write_acknowledged(0)
        for index in (0, 2):
            stage.world.take_checkpoint(stage.nodes[index])
        stage.pass_time(0.3)
    stage.restart(1)
    stage.wait("the checkpoint", lambda: stage.nodes[1].node is not None and stage.end_of(1) == stage.end_of(0))
    storage = stage.nodes[1].storage
    assert storage is not None
    stage.suppose(storage.log.entry_count == 0, "the successor's log is empty")
    _succeed(stage)


def _succeed(stage: QuorumStage) -> None:
    stage.crash(0)
    stage.lead(1)
    stage.write_acknowledged(1)
    stage.restart(0)
    stage.finish()


CLOCK_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "clock-ahead-at-an-election": clock_ahead_at_an_election,
    "clock-ahead-at-an-election-behind-a-checkpoint": clock_ahead_at_an_election_behind_a_checkpoint,
}
