"""The summary of a plan: its figures, broker by broker and rack by rack."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quorate.controller.planning.bounds import fewest_moves
from quorate.controller.planning.cluster import (
    NONE,
    BrokerRole,
    Indexes,
    NoPlan,
    ReassignmentPlan,
    TooFewBrokers,
    counts_of,
)
from quorate.controller.planning.exchange import breaks_rack_rule
from quorate.controller.planning.planner import plan as plan_of
from quorate.controller.planning.rules import lost_in, racks_needed
from quorate.controller.planning.validator import PlanVerdict, judge
from quorate.pipeline.planning.tables import NamedCluster

_ROLES = {BrokerRole.TAKES: "takes", BrokerRole.KEEPS: "keeps", BrokerRole.DRAINS: "drained"}


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """A broker before and after; bytes are None where no sizes are known."""

    broker: int
    rack: str | None
    role: str
    replicas_before: int
    replicas_after: int
    leaders_now: int
    preferred_before: int
    preferred_after: int
    bytes_before: float | None
    bytes_after: float | None


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan's figures.

    Attributes:
        lost: replicas in log directories that are not online. lost_moved: how many of them are put on another broker.
        fewest_moves: what no plan as even as this one does with less; None where it is not known to be the evenest.
        reordered: partitions in which only the order changes. bytes_moved: None without sizes.
    """

    partitions: int
    replicas: int
    in_motion: int
    brokers: tuple[BrokerFigures, ...]
    rack_rule_broken_before: int
    lost: int
    lost_moved: int
    verdict: PlanVerdict
    changed: int
    moves: int
    fewest_moves: int | None
    reordered: int
    bytes_moved: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class UnsoundPlan(AssertionError):
    """The validator refuses a plan of ours: a bug. It is not shown."""


def planned(named: NamedCluster) -> tuple[ReassignmentPlan, PlanSummary]:
    """Plan, have the plan judged, and sum it up.

    Raises:
        NoPlan: there is none; the message names the first partition that has too many replicas.
    """
    try:
        plan = plan_of(named.cluster)
    except TooFewBrokers as error:
        raise NoPlan(f"{error}; the first of them is {named.name(error.partition)}") from error
    verdict = judge(plan)
    if verdict.problems:
        raise UnsoundPlan("; ".join(verdict.problems))
    cluster, rows = named.cluster, plan.changed
    moves, lost = plan.moves_by_row, 0 if cluster.lost is None else int(np.count_nonzero(cluster.lost))
    return plan, PlanSummary(
        partitions=len(cluster.replicas),
        replicas=int(np.count_nonzero(cluster.replicas != NONE)),
        in_motion=named.in_motion,
        brokers=tuple(_figures(named, plan)),
        rack_rule_broken_before=int(
            np.count_nonzero(breaks_rack_rule(cluster.brokers, cluster.replicas, racks_needed(cluster)))
        ),
        lost=lost,
        lost_moved=lost - int(np.count_nonzero(lost_in(cluster, plan.after))),
        verdict=verdict,
        changed=len(rows),
        moves=int(moves.sum()),
        fewest_moves=fewest_moves(plan) if verdict.are_replicas_evenest else None,
        reordered=int(np.count_nonzero(moves == 0)),
        bytes_moved=None if cluster.sizes is None else float((cluster.sizes[rows] * moves).sum()),
    )


def _figures(named: NamedCluster, plan: ReassignmentPlan) -> list[BrokerFigures]:
    brokers, before, after = plan.before.brokers, plan.before.replicas, plan.after
    count, sizes = len(brokers), plan.before.sizes

    def bytes_on(replicas: Indexes) -> list[float] | list[None]:
        if sizes is None:
            return [None] * count
        held = replicas != NONE
        weights = np.broadcast_to(sizes[:, None], replicas.shape)[held]
        return list(np.bincount(replicas[held], weights, minlength=count).tolist())

    names = brokers.rack_names
    replicas_before, replicas_after = counts_of(before, count).tolist(), counts_of(after, count).tolist()
    preferred_before, preferred_after = counts_of(before[:, 0], count).tolist(), counts_of(after[:, 0], count).tolist()
    leaders, bytes_before, bytes_after = counts_of(named.leaders, count).tolist(), bytes_on(before), bytes_on(after)
    return [
        BrokerFigures(
            broker=int(brokers.ids[at]),
            rack=names[brokers.racks[at]] if names else None,
            role=_ROLES[BrokerRole(brokers.roles[at])],
            replicas_before=replicas_before[at],
            replicas_after=replicas_after[at],
            leaders_now=leaders[at],
            preferred_before=preferred_before[at],
            preferred_after=preferred_after[at],
            bytes_before=bytes_before[at],
            bytes_after=bytes_after[at],
        )
        for at in range(count)
    ]
