"""A phase of a run in which a majority of the voters is well and the others are not: the quorum goes on all the same.

Well is who runs, has its vote, a disk that works and sound connections to the others that are. The others crash, hang,
freeze, send nonsense, lose connections and directions of them, again and again, also where they lead. Writes must be
acknowledged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.controller.process.quorum_parts import quorum_timing
from quorate.controller.process.settings import QuorumSettings
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.quorum.faults import RandomFaults
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.quorum.options import Options
from quorate.scripts.simulation.quorum.world import World

_TIMING: Final = quorum_timing(QuorumSettings())
#: Virtual seconds within which a write is acknowledged. The longest that one node can hold up the others is as a leader
#: that reaches a single follower, which refuses to vote for others therefore, and whose own disk hangs: it gives up
#: after ``disk_timeout``. Connections among those that are well may be half open at first: ``silence_max`` shows that.
#: Then an election takes one timeout at most; there may be two more, for votes that are split, or won by the minority.
PROGRESS_SECONDS: Final = _TIMING.disk_timeout + _TIMING.silence_max + 3 * _TIMING.election_timeout_max
#: Between a write that was acknowledged and the next, on average.
_PAUSE_SECONDS: Final = 0.3


def with_a_sick_minority(world: World, writes: int) -> None:
    """Let a majority be well from now on, and the others not; demand so many writes, each within bounded time.

    Raises:
        Violation: one was not acknowledged.
    """
    well = _well(world)
    if not well or len(well) == len(world.nodes):
        return
    world.recover(well)
    sick = [node for node in world.nodes.values() if node not in well]
    world.options = _sickening(world)
    world.network.options = world.options
    world.network.noisy = {node.node_id for node in sick}
    RandomFaults(world, sick).schedule()
    world.every(world.options.read_rate, world.read)
    world.every(world.options.checkpoint_rate, world.take_checkpoint)
    for _ in range(writes):
        world.run_for(world.rng.expovariate(1.0 / _PAUSE_SECONDS))
        demand_a_write(world, f"though nodes {sorted(node.node_id for node in well)} are well")


def demand_a_write(world: World, circumstances: str, seconds: float = PROGRESS_SECONDS) -> None:
    """A write is acknowledged within bounded time.

    Raises:
        Violation: none was.
    """
    seconds *= 1.0 + world.options.drift
    count = len(world.checks.acknowledged)
    world.write_until(count + 1)
    if not world.run_until(lambda: len(world.checks.acknowledged) > count, seconds):
        raise Violation(f"no write was acknowledged in {seconds:.1f} s, {circumstances}:\n{world.describe()}")


def _well(world: World) -> list[SimulatedNode]:
    """As few as are a majority, drawn among those that have not lost their memory."""
    fit = [node for node in world.nodes.values() if node.node_id not in world.amnesiac | world.rotten]
    majority = len(world.nodes) // 2 + 1
    return world.rng.sample(fit, majority) if len(fit) >= majority else []


def _sickening(world: World) -> Options:
    return replace(
        world.options,
        # Of messages and disks of all nodes alike.
        loss=0.0,
        duplication=0.0,
        stall_share=0.0,
        recovery_crash_share=0.0,
        disk_delay_mean=min(world.options.disk_delay_mean, 0.001),
        # Of those that are not well.
        crash_rate=0.8,
        break_rate=0.8,
        forget_rate=0.4,
        partition_rate=2.0,
        freeze_rate=0.8,
        slow_disk_rate=0.4,
        disk_failure_rate=0.2,
        disk_hang_rate=0.8,
        resign_rate=0.2,
        damage=0.01,
    )
