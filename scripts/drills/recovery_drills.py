"""Drills on what is left when a majority is gone: founding anew, a backup under brokers that know better, a twin."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Final

from quorate.scripts.captures import DYNAMIC_SMALL_M1
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.drills.directory_drills import copy_directory
from quorate.scripts.drills.drill import Drill, healthy_again
from quorate.scripts.drills.environment import DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.lost_majority.directory_survey import survey_directory
from quorate.scripts.lost_majority.founding import apply_plan
from quorate.scripts.lost_majority.judgement import judge
from quorate.scripts.lost_majority.plan import RecoveryPlan, Targets, plan_from_backup, plan_from_survivors
from quorate.scripts.lost_majority.verification import verify
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image


async def quorum_loss(environment: DrillEnvironment) -> None:
    """Two of three are killed and wiped under load; brokers go on running."""
    survivor = await _lose_majority(environment)
    holding = await asyncio.to_thread(survey_directory, environment.directory(survivor))
    plan = plan_from_survivors(judge([holding]), [holding], _targets(environment))
    environment.noted["survivor_end"] = holding.end_offset
    begun = await _found(environment, plan)
    await _verify(environment, plan)
    # What the survivor did not hold may be gone, and the survey says so: only what it held must be there.
    environment.forget_unheld(await asyncio.to_thread(_topics, environment.directory(survivor), plan.end_offset))
    await environment.settle(begun)


async def restore_from_backup(environment: DrillEnvironment) -> None:
    """An old state takes the place of a newer one, under brokers that hold the newer one."""
    backup = environment.workplace / "backup"
    node = await environment.standby()
    copy_directory(environment.directory(node), backup)
    at = survey_directory(backup).end_offset
    environment.event("seen", f"a copy of controller {node}'s directory is taken, at offset {at}")
    await environment.load.more()
    await _stop_controllers(environment)
    holdings = [survey_directory(environment.directory(one)) for one in environment.controllers]
    newer = max(one.end_offset for one in holdings)
    plan = plan_from_backup(backup, None, judge(holdings), holdings, _targets(environment))
    begun = await _found(environment, plan)
    await _verify(environment, plan)
    held = await asyncio.to_thread(_topics, backup, None)
    status = await environment.status()
    environment.measure("offsets_back", max(0, newer - (status.quorum.log_start_offset or 0)))
    environment.forget_unheld(held)
    await environment.settle(begun)
    extra = await environment.cluster.topic_names() - held
    environment.measure("undone_that_is_there", sum(not name.startswith(environment.load.prefix) for name in extra))


async def import_and_replay(environment: DrillEnvironment) -> None:
    """A twin of a real Kafka cluster: what its controllers add up to is what Kafka's files do."""
    taken_from = environment.local.cluster.plan.source
    assert taken_from is not None
    source = Path(taken_from)
    image = await asyncio.to_thread(load_image, source)
    environment.noted["source_digest"] = digest_image(image).text
    environment.noted["partitions"] = len(image.partitions)
    at = image.provenance.end_offset
    same = 0
    for node in environment.controllers:
        made = await asyncio.to_thread(load_image, environment.directory(node), at)
        same += digest_image(made).text == environment.noted["source_digest"]
    environment.measure("twins_that_differ", len(environment.controllers) - same)
    begun = environment.event("fault", "kill -9 the active controller, on the imported state")
    active = environment.controllers[await environment.active()]
    await environment.kill(active)
    await environment.restart(active)
    await environment.settle(begun)


# --- steps -------------------------------------------------------------------------------------------


async def _lose_majority(environment: DrillEnvironment) -> int:
    await environment.load.more()
    survivor = await environment.standby()
    lost = [node for node in environment.controllers if node != survivor]
    await environment.kill(*(environment.controllers[node] for node in lost))
    for node in lost:
        shutil.rmtree(environment.directory(node))
    environment.event("fault", f"all controllers but {survivor} are wiped")
    await environment.control.stop(environment.controllers[survivor])
    return survivor


async def _stop_controllers(environment: DrillEnvironment) -> None:
    environment.event("fault", "all controllers are stopped")
    for node in environment.controllers.values():
        await environment.control.stop(node)


def _targets(environment: DrillEnvironment) -> Targets:
    voters = tuple((node, str(environment.directory(node).resolve())) for node in sorted(environment.controllers))
    return Targets(
        voters=voters,
        controllers=environment.cluster.members.controller_urls,
        local_cluster=str(environment.local.cluster.directory.resolve()),
    )


async def _found(environment: DrillEnvironment, plan: RecoveryPlan) -> float:
    begun = environment.event("repair", f"the quorum is rebuilt, as generation {plan.generation}")
    await asyncio.to_thread(apply_plan, plan)
    renewed = ClusterPlan.load(environment.local.cluster.directory)
    if renewed is None:
        raise DrillBroken("the local cluster's plan is gone")
    await environment.renew_controllers(renewed)
    await environment.control.start(list(environment.controllers.values()))
    await environment.until_voting()
    led = environment.event("seen", "the new quorum has a leader, and all of it votes")
    environment.measure("founded_ms", (led - begun) * 1000)
    return begun


async def _verify(environment: DrillEnvironment, plan: RecoveryPlan) -> None:
    seen = await asyncio.to_thread(verify, plan, None)
    failing = [finding for finding in seen.findings if finding.verdict != "holds"]
    environment.measure("findings_against_it", len(failing))
    for finding in failing:
        environment.event("seen", f"{finding.what}: {finding.detail}")


def _topics(directory: Path, offset: int | None) -> set[str]:
    """Names of the topics in a directory's state."""
    return set(load_image(directory, offset).topics.by_name)


_FOUNDED: Final = (
    Expectation(name="founded_ms", meaning="from the decision to a quorum of voters, ms", at_most=30_000),
    Expectation(name="findings_against_it", meaning="findings of recover verify that do not hold", at_most=0),
    healthy_again(60_000),
)

DRILLS: Final = (
    Drill(
        "quorum-loss",
        "two of three controllers are killed and wiped under load: rebuilt, everything the third held is there",
        _FOUNDED,
        quorum_loss,
        "destroys",
    ),
    Drill(
        "restore-from-backup",
        "an old state is restored under brokers that hold a newer one: offsets go on, everybody takes the old state",
        (
            *_FOUNDED,
            Expectation(name="offsets_back", meaning="offsets that a follower would have to go back", at_most=0),
            Expectation(name="undone_that_is_there", meaning="topics that the backup does not have", at_most=0),
        ),
        restore_from_backup,
        "destroys",
    ),
    Drill(
        "import-and-replay",
        "a captured Kafka cluster is imported: all controllers add up to what Kafka's files do, and fail over",
        (
            Expectation(name="twins_that_differ", meaning="controllers that differ from the source", at_most=0),
            healthy_again(30_000),
        ),
        import_and_replay,
        "rigs",
        source=DYNAMIC_SMALL_M1,
    ),
)
