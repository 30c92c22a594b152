"""Running drills: ground, deadline, verdict, clean-up. A drill leaves no process and no file but its report."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from metadata_log.errors import QuorateError
from scripts.cluster.local import LocalCluster, LocalOptions
from scripts.cluster.making import Ports, make_fresh, make_twin
from scripts.cluster.plan import ClusterError, ClusterPlan
from scripts.cluster.ports import free_ports
from scripts.drills.broker_drills import DRILLS as BROKER_DRILLS
from scripts.drills.controller_drills import DRILLS as CONTROLLER_DRILLS
from scripts.drills.drill import Drill
from scripts.drills.ground import Ground
from scripts.drills.machine_drills import DRILLS as MACHINE_DRILLS
from scripts.drills.outcome import Expectation, Measured, Outcome, Verdict
from scripts.drills.recovery_drills import DRILLS as RECOVERY_DRILLS

#: By name, in the order in which `all` runs them.
DRILLS: Final[Mapping[str, Drill]] = {
    drill.name: drill for drill in (*CONTROLLER_DRILLS, *MACHINE_DRILLS, *BROKER_DRILLS, *RECOVERY_DRILLS)
}
_KAFKA_DATA: Final = Path(__file__).resolve().parents[2] / "tests" / "data" / "kafka"
_DRILL_S: Final = 240.0
_END_S: Final = 20.0
#: Drills look at what follows from a fault, not at the wait before it: brokers are quick to heartbeat.
_BROKER_SETTINGS: Final = {"LIFECYCLE__HEARTBEAT_INTERVAL_MS": "500"}


async def run_drill(
    drill: Drill, stricter: Mapping[str, float], keep: Callable[[Path], None], on: Path | None = None
) -> Outcome:
    """Run one drill, on a cluster made for it or on one that does not run.

    Args:
        stricter: other limits, by name of the expectation.
        keep: called with the cluster's directory before it goes, if the drill did not pass.
        on: directory of a cluster of `quorate up`; it is started, and stopped in order afterwards.

    Raises:
        ClusterError: the cluster in ``on`` is not one for this drill. PortTaken: it runs.
    """
    workplace = Path(tempfile.mkdtemp(prefix=f"quorate-drill-{drill.name}-"))
    directory = workplace / "var" if on is None else on
    try:
        plan = _made(drill, directory) if on is None else _known(drill, directory)
        ground = Ground(LocalCluster(directory, plan, _options(drill, workplace)), workplace)
        ground.cluster.require_ports()
        outcome = await _run(drill, ground, stricter)
        if outcome.verdict != "passed":
            keep(directory)
        return outcome
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def _known(drill: Drill, directory: Path) -> ClusterPlan:
    """The plan of a cluster that is there already."""
    plan = ClusterPlan.load(directory)
    if plan is None:
        raise ClusterError(f"{directory} holds no cluster: make one with `quorate up --dir {directory}`")
    brokers = sum(len(one.ids) for one in plan.brokers)
    if drill.source is not None:
        raise ClusterError(f"{drill.name} imports a cluster of its own: run it without --on")
    if len(plan.controllers) < drill.controllers or brokers < drill.brokers:
        raise ClusterError(
            f"{drill.name} needs {drill.controllers} controllers and {drill.brokers} brokers; {directory} has"
            f" {len(plan.controllers)} and {brokers}"
        )
    return plan


def _made(drill: Drill, directory: Path) -> ClusterPlan:
    ports = Ports.of(free_ports(2 * drill.controllers + drill.brokers + 4))
    if drill.source is not None:
        return make_twin(directory, _KAFKA_DATA / drill.source, ports, "all")
    return make_fresh(directory, ports, drill.controllers, drill.brokers)


def _options(drill: Drill, workplace: Path) -> LocalOptions:
    settings = LocalOptions(drill.controller_settings, _BROKER_SETTINGS)
    if not drill.is_faulty:
        return settings

    def faulty(node: int) -> tuple[str, ...]:
        return ("-m", "scripts.drills.faulty_controller", str(workplace / f"faults-{node}.json"))

    return LocalOptions(drill.controller_settings, _BROKER_SETTINGS, faulty)


async def _run(drill: Drill, ground: Ground, stricter: Mapping[str, float]) -> Outcome:
    begun_at_ms = time.time_ns() // 1_000_000
    reason = ""
    try:
        async with asyncio.timeout(_DRILL_S):
            await ground.start()
            await drill.run(ground)
    except TimeoutError:
        reason = f"it did not come to its end within {_DRILL_S:.0f} s"
    except QuorateError as error:
        reason = str(error)
    except ExceptionGroup as group:
        ours = group.subgroup(QuorateError)
        if ours is None:
            raise
        reason = str(ours.exceptions[0])
    finally:
        await _end(ground)
    measured = tuple(
        Measured(expectation=_limited(one, stricter), value=ground.values.get(one.name))
        for one in drill.all_expectations
    )
    verdict, why = judged(measured, reason)
    return Outcome(
        drill=drill.name,
        hypothesis=drill.hypothesis,
        verdict=verdict,
        reason=why,
        begun_at_ms=begun_at_ms,
        seconds=round(time.monotonic() - ground.begun, 1),
        cluster_id=ground.cluster.plan.cluster_id,
        controllers=len(ground.cluster.plan.controllers),
        brokers=sum(len(one.ids) for one in ground.cluster.plan.brokers),
        measured=measured,
        noted=ground.noted,
        events=tuple(ground.events),
        acknowledged_s=tuple(round(at - ground.begun, 3) for stream in ground.streams for at in stream.times),
    )


async def _end(ground: Ground) -> None:
    """No process is left, whatever state it is in; what can end in order does."""
    with suppress(TimeoutError, QuorateError):
        async with asyncio.timeout(_END_S):
            await ground.cluster.stop()
    for process in ground.cluster.processes:
        process.kill()
    for process in ground.cluster.processes:
        with suppress(QuorateError):
            await process.wait(_END_S)
    await ground.cluster.client.close()


def _limited(expectation: Expectation, stricter: Mapping[str, float]) -> Expectation:
    limit = stricter.get(expectation.name)
    return expectation if limit is None else expectation.model_copy(update={"at_most": limit})


def judged(measured: tuple[Measured, ...], reason: str) -> tuple[Verdict, str]:
    """The verdict and why: ``reason`` where the drill did not come to its end, else what does not hold."""
    if reason:
        return "broken", reason
    return ("passed" if all(one.holds for one in measured) else "failed"), _reason(measured)


def _reason(measured: tuple[Measured, ...]) -> str:
    return "; ".join(
        f"{one.expectation.meaning}: {'not measured' if one.value is None else f'{one.value:g}'}, expected at most"
        f" {one.expectation.at_most:g}"
        for one in measured
        if not one.holds
    )
