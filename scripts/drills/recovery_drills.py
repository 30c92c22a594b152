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
from quorate.scripts.drills.environment import DrillBroken, Ground
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.lost_majority.directory_survey import survey_directory
from quorate.scripts.lost_majority.founding import apply_plan
from quorate.scripts.lost_majority.judgement import judge
from quorate.scripts.lost_majority.plan import RecoveryPlan, Targets, plan_from_backup, plan_from_survivors
from quorate.scripts.lost_majority.verification import verify
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image


async def quorum_loss(ground: Ground) -> None:
    """Two of three are killed and wiped under load; brokers go on running."""
    survivor = await _lose_majority(ground)
    holding = await asyncio.to_thread(survey_directory, ground.directory(survivor))
    plan = plan_from_survivors(judge([holding]), [holding], _targets(ground))
    ground.noted["survivor_end"] = holding.end_offset
    begun = await _found(ground, plan)
    await _verify(ground, plan)
    # What the survivor did not hold may be gone, and the survey says so: only what it held must be there.
    ground.forget_unheld(await asyncio.to_thread(_topics, ground.directory(survivor), plan.end_offset))
    await ground.settle(begun)


async def restore_from_backup(ground: Ground) -> None:
    """An old state takes the place of a newer one, under brokers that hold the newer one."""
    backup = ground.workplace / "backup"
    node = await ground.standby()
    copy_directory(ground.directory(node), backup)
    at = survey_directory(backup).end_offset
    ground.event("seen", f"a copy of controller {node}'s directory is taken, at offset {at}")
    await ground.load.more()
    await _stop_controllers(ground)
    holdings = [survey_directory(ground.directory(one)) for one in ground.controllers]
    newer = max(one.end_offset for one in holdings)
    plan = plan_from_backup(backup, None, judge(holdings), holdings, _targets(ground))
    begun = await _found(ground, plan)
    await _verify(ground, plan)
    held = await asyncio.to_thread(_topics, backup, None)
    status = await ground.status()
    ground.measure("offsets_back", max(0, newer - (status.quorum.log_start_offset or 0)))
    ground.forget_unheld(held)
    await ground.settle(begun)
    extra = await ground.cluster.topic_names() - held
    ground.measure("undone_that_is_there", sum(not name.startswith(ground.load.prefix) for name in extra))


async def import_and_replay(ground: Ground) -> None:
    """A twin of a real Kafka cluster: what its controllers add up to is what Kafka's files do."""
    taken_from = ground.local.cluster.plan.source
    assert taken_from is not None
    source = Path(taken_from)
    image = await asyncio.to_thread(load_image, source)
    ground.noted["source_digest"] = digest_image(image).text
    ground.noted["partitions"] = len(image.partitions)
    at = image.provenance.end_offset
    same = 0
    for node in ground.controllers:
        made = await asyncio.to_thread(load_image, ground.directory(node), at)
        same += digest_image(made).text == ground.noted["source_digest"]
    ground.measure("twins_that_differ", len(ground.controllers) - same)
    begun = ground.event("fault", "kill -9 the active controller, on the imported state")
    active = ground.controllers[await ground.active()]
    await ground.kill(active)
    await ground.restart(active)
    await ground.settle(begun)


# --- steps -------------------------------------------------------------------------------------------


async def _lose_majority(ground: Ground) -> int:
    await ground.load.more()
    survivor = await ground.standby()
    lost = [node for node in ground.controllers if node != survivor]
    await ground.kill(*(ground.controllers[node] for node in lost))
    for node in lost:
        shutil.rmtree(ground.directory(node))
    ground.event("fault", f"all controllers but {survivor} are wiped")
    await ground.control.stop(ground.controllers[survivor])
    return survivor


async def _stop_controllers(ground: Ground) -> None:
    ground.event("fault", "all controllers are stopped")
    for node in ground.controllers.values():
        await ground.control.stop(node)


def _targets(ground: Ground) -> Targets:
    voters = tuple((node, str(ground.directory(node).resolve())) for node in sorted(ground.controllers))
    return Targets(
        voters=voters,
        controllers=ground.cluster.members.controller_urls,
        local_cluster=str(ground.local.cluster.directory.resolve()),
    )


async def _found(ground: Ground, plan: RecoveryPlan) -> float:
    begun = ground.event("repair", f"the quorum is founded anew, as generation {plan.generation}")
    await asyncio.to_thread(apply_plan, plan)
    renewed = ClusterPlan.load(ground.local.cluster.directory)
    if renewed is None:
        raise DrillBroken("the local cluster's plan is gone")
    await ground.renew_controllers(renewed)
    await ground.control.start(list(ground.controllers.values()))
    await ground.until_voting()
    led = ground.event("seen", "the new quorum has a leader, and all of it votes")
    ground.measure("founded_ms", (led - begun) * 1000)
    return begun


async def _verify(ground: Ground, plan: RecoveryPlan) -> None:
    seen = await asyncio.to_thread(verify, plan, None)
    failing = [finding for finding in seen.findings if finding.verdict != "holds"]
    ground.measure("findings_against_it", len(failing))
    for finding in failing:
        ground.event("seen", f"{finding.what}: {finding.detail}")


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
        "two of three controllers are killed and wiped under load: founded anew, everything the third held is there",
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
