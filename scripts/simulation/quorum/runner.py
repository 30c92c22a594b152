"""Runs seeds."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from quorate.scripts.simulation.quorum.faults import RandomFaults
from quorate.scripts.simulation.quorum.minority import with_a_sick_minority
from quorate.scripts.simulation.quorum.options import draw_alone
from quorate.scripts.simulation.quorum.world import World


@dataclass(frozen=True, slots=True)
class SeedResult:
    """The counts of one clean seed."""

    seed: int
    events: int
    acknowledged: int
    reads: int
    epochs: int
    checkpoints_loaded: int
    #: Equal for equal runs.
    trace: int


def run_seed(seed: int) -> SeedResult:
    """Run one seed to its end.

    Raises:
        Violation: a promise was broken.
    """
    options = draw_alone(Random(seed * 2))
    world = World(seed, options)
    world.format()
    world.every(options.write_rate, lambda: (world.write(), None)[1])
    world.every(options.read_rate, world.read)
    world.every(options.checkpoint_rate, world.take_checkpoint)
    RandomFaults(world).schedule()
    world.run_events(options.events)
    with_a_sick_minority(world, options.sick_minority_writes)
    world.heal()
    world.converge()
    return SeedResult(
        seed,
        world.scheduler.count,
        len(world.checks.acknowledged),
        world.confirmed_reads,
        max(world.checks.leaders, default=0),
        world.checkpoints_installed,
        world.network.trace,
    )
