"""Checks a quorum that was founded again against the plan: its directories, and its running controllers."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.errors import CorruptState, QuorateError
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.lost_majority.asking import ask_controllers
from quorate.scripts.lost_majority.directory_survey import SurveyPart
from quorate.scripts.lost_majority.plan import PlannedVoter, RecoveryPlan
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image_digest import digest_image

Verdict = Literal["holds", "fails", "unknown"]
_GRAVITY: Final = ("holds", "unknown", "fails")


class RecoveryFinding(SurveyPart):
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    detail: str


class RecoveryVerification(SurveyPart):
    """All of it."""

    verdict: Verdict
    findings: tuple[RecoveryFinding, ...]


def verify(plan: RecoveryPlan, secret: bytes | None) -> RecoveryVerification:
    """Look at directories and controllers; changes nothing, and may be run while they work."""
    findings = [finding for voter in plan.voters for finding in _directory(plan, voter)]
    findings.append(_quorum(plan, secret))
    verdict = max((finding.verdict for finding in findings), key=_GRAVITY.index)
    return RecoveryVerification(verdict=verdict, findings=tuple(findings))


def _directory(plan: RecoveryPlan, voter: PlannedVoter) -> list[RecoveryFinding]:
    name = f"node {voter.node_id}, {voter.directory}"
    path = Path(voter.directory) / META_PROPERTIES_NAME
    try:
        meta = decode_meta_properties(path.read_bytes(), str(path))
    except FileNotFoundError:
        detail = "no metadata directory is there: `quorate recover apply` makes it"
        return [RecoveryFinding(what=name, verdict="fails", detail=detail)]
    except (OSError, CorruptState) as error:
        return [RecoveryFinding(what=name, verdict="fails", detail=str(error))]
    is_planned = (meta.generation, uuid_text(meta.directory_id)) == (plan.generation, voter.directory_id)
    detail = f"generation {meta.generation}, directory {uuid_text(meta.directory_id)}"
    return [
        RecoveryFinding(what=name, verdict="holds" if is_planned else "fails", detail=detail),
        _state(plan, voter, name),
    ]


def _state(plan: RecoveryPlan, voter: PlannedVoter, name: str) -> RecoveryFinding:
    what = f"{name}: state at {plan.end_offset}"
    if not plan.end_offset:
        return RecoveryFinding(what=what, verdict="holds", detail="the log was empty")
    try:
        digest = digest_image(load_image(Path(voter.directory), plan.end_offset)).text
    except ImageNotAvailable as error:
        # Retention may have taken that part of the log since.
        return RecoveryFinding(what=what, verdict="unknown", detail=str(error))
    except QuorateError as error:
        return RecoveryFinding(what=what, verdict="fails", detail=str(error))
    return RecoveryFinding(what=what, verdict="holds" if digest == plan.digest else "fails", detail=f"digest {digest}")


def _quorum(plan: RecoveryPlan, secret: bytes | None) -> RecoveryFinding:
    what = "the quorum"
    answers = ask_controllers(plan.controllers, secret, plan.local_cluster)
    if not answers:
        asked = ", ".join(plan.controllers) or "no address is known"
        return RecoveryFinding(what=what, verdict="unknown", detail=f"no controller answers ({asked}): start them")
    best = max(answers, key=lambda answer: (answer.epoch, answer.high_watermark))
    detail = (
        f"{len(answers)} of {len(plan.voters)} controllers answer, controller {best.active_id} is active in epoch"
        f" {best.epoch}, {best.high_watermark:,} records are committed"
    )
    if best.active_id is None:
        return RecoveryFinding(
            what=what, verdict="unknown", detail=f"{len(answers)} controllers answer, and none is active yet"
        )
    is_above = best.epoch > plan.generation and best.high_watermark > plan.end_offset
    return RecoveryFinding(what=what, verdict="holds" if is_above else "fails", detail=detail)
