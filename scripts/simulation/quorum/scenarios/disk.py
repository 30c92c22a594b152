"""Disk faults on several machines at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

_ROUNDS: Final = 6
_WRITES: Final = 60


def power_cuts_of_all_machines(seed: int) -> None:
    """All machines lose power under load, again and again; of each disk's last write any pages may be missing.

    A node that takes that for damage has no vote, and two of them leave no quorum.
    """
    options = replace(QUIET, payload_bytes_max=6_000, disk_delay_mean=0.002, crash_policy=CrashPolicy.PAGES)
    stage = QuorumStage(seed, options=options)
    world = stage.world
    for _ in range(_ROUNDS):
        stage.wait("a leader", lambda: bool(world.leaders()))
        for _ in range(_WRITES):
            world.write()
            stage.pass_time(0.0004)
        for index in range(len(stage.nodes)):
            stage.crash(index, is_power_cut=True)
        for index in range(len(stage.nodes)):
            stage.restart(index)
    stage.claim(bool(world.checks.acknowledged), "nothing was acknowledged")
    stage.finish()


DISK_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {"power-cuts-of-all-machines": power_cuts_of_all_machines}
