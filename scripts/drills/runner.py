"""Running drills: environment, deadline, verdict, clean-up. A drill leaves no process and no file but its report."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.control import LocalControl
from quorate.scripts.drills.broker_drills import DRILLS as BROKER_DRILLS
from quorate.scripts.drills.certificate_drills import DRILLS as CERTIFICATE_DRILLS
from quorate.scripts.drills.controller_drills import DRILLS as CONTROLLER_DRILLS
from quorate.scripts.drills.directory_drills import DRILLS as DIRECTORY_DRILLS
from quorate.scripts.drills.drill import Drill
from quorate.scripts.drills.environment import DrillEnvironment
from quorate.scripts.drills.machine_drills import DRILLS as MACHINE_DRILLS
from quorate.scripts.drills.outcome import DrillMeasurement, DrillOutcome, Expectation, Verdict
from quorate.scripts.drills.places import ForeignCluster, On, prepare
from quorate.scripts.drills.recovery_drills import DRILLS as RECOVERY_DRILLS
from quorate.scripts.drills.replica_drills import DRILLS as REPLICA_DRILLS
from quorate.scripts.drills.secret_drills import DRILLS as SECRET_DRILLS
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.line import telling

#: By name, in the order in which `all` runs them.
DRILLS: Final[Mapping[str, Drill]] = {
    drill.name: drill
    for drill in (
        *CONTROLLER_DRILLS,
        *MACHINE_DRILLS,
        *DIRECTORY_DRILLS,
        *BROKER_DRILLS,
        *REPLICA_DRILLS,
        *RECOVERY_DRILLS,
        *CERTIFICATE_DRILLS,
        *SECRET_DRILLS,
    )
}
_DRILL_S: Final = 240.0
_END_S: Final = 20.0


async def run_drill(
    drill: Drill, stricter: Mapping[str, float], keep: Callable[[Path], None], on: On = None
) -> DrillOutcome:
    """Run one drill, on a cluster made for it or on one that is there already, which is left as it was found.

    Args:
        stricter: other limits, by name of the expectation.
        keep: called with the directory of a local cluster before it goes, if the drill did not pass.

    Raises:
        NotHere, ClusterError, PortTaken, ApiError: as ``prepare`` says.
    """
    if obstacle := drill.obstacle():
        return skipped(drill, obstacle)
    workplace = Path(tempfile.mkdtemp(prefix=f"quorate-drill-{drill.name}-"))
    try:
        environment = await prepare(drill, on, workplace)
        if not isinstance(environment.control, LocalControl):
            stricter = {**drill.limits_elsewhere, **stricter}
        outcome = await _run(drill, environment, stricter, is_guest=on is not None)
        if outcome.verdict != "passed" and not isinstance(on, ForeignCluster):
            keep(workplace / "var" if on is None else on.path)
        return outcome
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def skipped(drill: Drill, reason: str) -> DrillOutcome:
    """A drill that cannot be run here: nothing was done, nothing is known."""
    return DrillOutcome(
        drill=drill.name,
        hypothesis=drill.hypothesis,
        verdict="skipped",
        reason=reason,
        begun_at_ms=time.time_ns() // 1_000_000,
        seconds=0.0,
        cluster_id="",
        controllers=0,
        brokers=0,
        measured=(),
        noted={},
        events=(),
        acknowledged_s=(),
    )


async def _run(
    drill: Drill, environment: DrillEnvironment, stricter: Mapping[str, float], *, is_guest: bool
) -> DrillOutcome:
    async def work() -> None:
        drill.arrange(environment)
        async with environment.written_to():
            await drill.run(environment)

    begun_at_ms = time.time_ns() // 1_000_000
    with telling(lambda seconds: f"{drill.name}: {duration(seconds)}, {_so_far(environment)}"):
        try:
            reason = await why_unfinished(work(), _DRILL_S)
        finally:
            left = await _end(environment, is_guest=is_guest)
    expected = {one.name for one in drill.all_expectations}
    measured = tuple(
        DrillMeasurement(expectation=_limited(one, stricter), value=environment.values.get(one.name))
        for one in drill.all_expectations
    )
    verdict, why = judged(measured, reason or left)
    return DrillOutcome(
        drill=drill.name,
        hypothesis=drill.hypothesis,
        verdict=verdict,
        reason=why,
        begun_at_ms=begun_at_ms,
        seconds=round(time.monotonic() - environment.begun, 1),
        cluster_id=environment.cluster.members.cluster_id,
        controllers=len(environment.controllers),
        brokers=len(environment.cluster.members.broker_ids),
        measured=measured,
        noted=environment.noted | {name: value for name, value in environment.values.items() if name not in expected},
        events=tuple(environment.events),
        acknowledged_s=tuple(round(at - environment.begun, 3) for at in environment.load.times),
    )


def _so_far(environment: DrillEnvironment) -> str:
    written = f"{len(environment.load.times):,} writes acknowledged"
    return f"{written}; {environment.events[-1].text}" if environment.events else written


async def why_unfinished(work: Awaitable[None], seconds: float) -> str:
    """Do the work; return why it did not come to its end within a time, empty where it did."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return f"it did not come to its end within {seconds:.0f} s"
    except QuorateError as error:
        return str(error)
    except ExceptionGroup as group:
        ours = group.subgroup(QuorateError)
        if ours is None:
            raise
        first: BaseException = ours
        while isinstance(first, BaseExceptionGroup):  # a pool of writers is a group within the group of the drill
            first = first.exceptions[0]
        return str(first)
    return ""


async def _end(environment: DrillEnvironment, *, is_guest: bool) -> str:
    """Leave nothing behind, whatever state it is in; what could not be undone in a cluster that others use."""
    left = ""
    if is_guest:
        try:
            async with asyncio.timeout(_END_S):
                await environment.control.restore()
                await environment.remove_created()
        except TimeoutError:
            left = f"topics and quotas {environment.prefix}-* could not be deleted within {_END_S:.0f} s"
        except QuorateError as error:
            left = f"the cluster is not as it was, topics and quotas {environment.prefix}-* may be there: {error}"
    await environment.control.end()
    await environment.cluster.client.close()
    task = asyncio.current_task()
    if left and task is not None and task.cancelling():
        sys.stderr.write(f"quorate: {left}\n")  # after Ctrl-C there is no outcome to say it in
    return left


def _limited(expectation: Expectation, stricter: Mapping[str, float]) -> Expectation:
    limit = stricter.get(expectation.name)
    return expectation if limit is None else expectation.model_copy(update={"at_most": limit})


def judged(measured: tuple[DrillMeasurement, ...], reason: str) -> tuple[Verdict, str]:
    """The verdict and why: ``reason`` where the drill did not come to its end, else what does not hold."""
    if reason:
        return "broken", reason
    return ("passed" if all(one.holds for one in measured) else "failed"), _reason(measured)


def _reason(measured: tuple[DrillMeasurement, ...]) -> str:
    return "; ".join(
        f"{one.expectation.meaning}: {'not measured' if one.value is None else f'{one.value:g}'}, expected at most"
        f" {one.expectation.at_most:g}"
        for one in measured
        if not one.holds
    )
