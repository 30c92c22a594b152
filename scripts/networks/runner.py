"""Running scenarios: network, stage, deadline, verdict, clean-up. A run leaves no process and no file."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from quorate.scripts.drills.outcome import DrillMeasurement, DrillOutcome
from quorate.scripts.drills.runner import judged, why_unfinished
from quorate.scripts.networks.network import VirtualNetwork
from quorate.scripts.networks.scenarios import Scenario
from quorate.scripts.networks.site import machine_names
from quorate.scripts.networks.stage import NetworkStage

#: Beside the fault's own time.
_RUN_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Of one run."""

    voters: int
    brokers: int
    seed: int
    #: How long the fault lasts; None: the scenario's own.
    seconds: float | None


def run_once(scenario: Scenario, options: RunOptions, keep: Callable[[Path], None]) -> DrillOutcome:
    """Run a scenario on a cluster of its own. The process is in namespaces of its own (``namespaces.isolate``).

    ``keep`` is called with the directory of the cluster before it goes, if the run did not pass.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"quorate-netsim-{scenario.name}-"))
    try:
        with VirtualNetwork(machine_names(options.voters, options.brokers), options.seed) as network:
            scenario.prepare(network)
            outcome = asyncio.run(_run(scenario, options, network, directory))
        if outcome.verdict != "passed":
            keep(directory)
        return outcome
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _run(scenario: Scenario, options: RunOptions, network: VirtualNetwork, directory: Path) -> DrillOutcome:
    stage = NetworkStage(network, directory, Random(options.seed))
    seconds = scenario.seconds if options.seconds is None else options.seconds

    async def work() -> None:
        async with stage.running():
            await scenario.run(seconds)(stage)

    begun_at_ms = time.time_ns() // 1_000_000
    reason = await why_unfinished(work(), _RUN_S + seconds)
    measured = tuple(
        DrillMeasurement(expectation=one, value=stage.values.get(one.name)) for one in scenario.all_expectations
    )
    verdict, why = judged(measured, reason)
    expected = {one.name for one in scenario.all_expectations}
    noted = {name: value for name, value in stage.values.items() if name not in expected}
    return DrillOutcome(
        drill=scenario.name,
        hypothesis=scenario.claim,
        verdict=verdict,
        reason=why,
        begun_at_ms=begun_at_ms,
        seconds=round(time.monotonic() - stage.begun, 1),
        cluster_id=stage.site.members.cluster_id,
        controllers=options.voters,
        brokers=options.brokers,
        measured=measured,
        noted={"seed": options.seed, **noted, **stage.noted},
        events=tuple(stage.events),
        acknowledged_s=tuple(round(one.answered - stage.begun, 3) for one in stage.workload.acknowledged),
    )
