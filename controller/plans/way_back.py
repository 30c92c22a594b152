"""The way back from what a request changed: requests that make it as it was, and what no request brings back.

It is found in the states before and after, not in the request: of whatever kind that was, what differs is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quorate.controller.api.answers.plan_models import PLAN_FORMAT, ChangePlan, PlannedChange, PlanStep
from quorate.controller.plans.facts import facts_of
from quorate.controller.plans.partitions_back import partitions_back
from quorate.controller.plans.settings_back import settings_back
from quorate.controller.plans.topics_back import topics_back
from quorate.controller.plans.way_back_parts import FoundWays, RequestStates
from quorate.snapshots.image.image import MetadataImage


@dataclass(frozen=True, slots=True)
class WayBack:
    """The changes that take a request back, and what does not come back."""

    changes: list[PlannedChange] = field(default_factory=list)
    #: Sentences about what no request brings back.
    lost: list[str] = field(default_factory=list)
    #: ... and about what somebody has changed since: it is not touched.
    since: list[str] = field(default_factory=list)


def way_back(states: Sequence[RequestStates]) -> WayBack:
    """The way back from changes, the last of them first. Each is given by the states before, after and now."""
    found = FoundWays()
    for one in reversed(states):
        topics_back(one, states[-1].after, found)
        partitions_back(one, found)
        settings_back(one, found)
    return WayBack(found.changes, found.lost, found.since)


def plan_back(back: WayBack, now: MetadataImage, cluster_id: str, undoes: str, made_ms: int) -> ChangePlan:
    """The plan of a way back, made on a state.

    Args:
        undoes: the request. made_ms: now, in milliseconds since 1970.

    Raises:
        As ``facts_of``.
    """
    return ChangePlan(
        format=PLAN_FORMAT,
        version=1,
        cluster_id=cluster_id,
        state_offset=now.provenance.end_offset,
        made_ms=made_ms,
        made_by="undo",
        undoes=undoes,
        steps=[PlanStep(change=change, facts=facts_of(now, change), waits=False) for change in back.changes],
    )
