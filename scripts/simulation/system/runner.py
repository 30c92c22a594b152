"""Runs seeds of the whole system."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from quorate.scripts.simulation.system.faults import SystemFaults
from quorate.scripts.simulation.system.options import draw_system
from quorate.scripts.simulation.system.story import RunStory, listening
from quorate.scripts.simulation.system.world import SystemWorld


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The counts of one clean seed."""

    seed: int
    events: int
    seconds: float
    records: int
    known_calls: int
    unknown_calls: int
    undecided_topics: int
    epochs: int
    checkpoints_loaded: int
    states_compared: int
    broker_images_compared: int
    #: Equal for equal runs.
    trace: int
    digest: str


def run_system_seed(seed: int, story: RunStory | None = None) -> SystemResult:
    """Run one seed to its end, and let ``story`` be told of it.

    Raises:
        Violation: a promise was broken.
    """
    world = SystemWorld(seed, draw_system(Random(seed * 2)), story)
    with listening(story):
        try:
            world.format()
            SystemFaults(world).schedule()
            world.run_for(world.system.seconds)
            world.heal()
            world.converge()
            return _result(seed, world)
        finally:
            world.close()


def _result(seed: int, world: SystemWorld) -> SystemResult:
    checks, history = world.checks, world.history
    return SystemResult(
        seed,
        world.scheduler.count,
        world.scheduler.now,
        checks.reference.end_offset,
        history.known,
        history.unknown,
        world.undecided,
        max(checks.leaders, default=0),
        world.checkpoints_installed,
        checks.states_compared,
        checks.broker_images_compared,
        world.network.trace ^ world.wire.trace,
        checks.reference.newest_digest.hex(),
    )
