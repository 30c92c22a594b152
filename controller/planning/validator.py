"""A plan is judged: may it be carried out, and is it as even as any? Knows nothing of how plans are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.controller.planning.cluster import (
    NONE,
    BrokerRole,
    Brokers,
    Counts,
    Indexes,
    Mask,
    ReassignmentPlan,
    counts_of,
)
from quorate.controller.planning.exchange import (
    breaks_rack_rule,
    is_evenest,
    leader_exchanges,
    reachable,
    replica_exchanges,
)
from quorate.controller.planning.rules import may_lead, passes_over, racks_needed


@dataclass(frozen=True)
class Spread:
    """Counts of the brokers that take replicas."""

    lowest: int
    highest: int

    @classmethod
    def of(cls, counts: Counts, members: Mask) -> Spread:
        inside = counts[members]
        return cls(int(inside.min()), int(inside.max())) if len(inside) else cls(0, 0)

    @property
    def is_even(self) -> bool:
        """Whether they are within one of each other."""
        return self.highest - self.lowest <= 1


@dataclass(frozen=True)
class PlanVerdict:
    """The verdict on a plan.

    Attributes:
        problems: a sentence for each rule that is broken; a plan with one must not be carried out.
        replicas, leaders: counts after it. are_replicas_evenest: no placement under the rules has evener counts.
            are_leaders_evenest: no order of the replicas in it has.
    """

    problems: tuple[str, ...]
    replicas_before: Spread
    replicas: Spread
    leaders_before: Spread
    leaders: Spread
    are_replicas_evenest: bool
    are_leaders_evenest: bool


def judge(plan: ReassignmentPlan) -> PlanVerdict:
    """Hold a plan against the rules and against what is possible."""
    brokers, before, after = plan.before.brokers, plan.before.replicas, plan.after
    count, takers = len(brokers), brokers.takers
    problems = tuple(_problems(plan))
    loads, leads = counts_of(after, count), counts_of(after[:, 0], count)
    return PlanVerdict(
        problems,
        Spread.of(counts_of(before, count), takers),
        Spread.of(loads, takers),
        Spread.of(counts_of(before[:, 0], count), takers),
        Spread.of(leads, takers),
        not problems and is_evenest(loads, takers, reachable(replica_exchanges(brokers, after))),
        not problems and is_evenest(leads, takers, reachable(leader_exchanges(brokers, may_lead(plan.before, after)))),
    )


def _problems(plan: ReassignmentPlan) -> list[str]:
    brokers, before, after = plan.before.brokers, plan.before.replicas, plan.after
    if after.shape != before.shape:
        return [f"the plan has {after.shape} places, the cluster {before.shape}"]
    if len(after) and not (after.min() >= NONE and after.max() < len(brokers)):
        return ["a replica stands on a broker that is not known"]
    role = np.append(brokers.roles, -1)[after]
    came = ~(after[:, :, None] == before[:, None, :]).any(axis=2)
    broken = {
        "have more or fewer replicas than before": ((after == NONE) != (before == NONE)).any(axis=1),
        "have a broker twice": _has_twice(after),
        "have a replica on a drained broker": (role == BrokerRole.DRAINS).any(axis=1),
        "get a replica on a broker that takes none": (came & (after != NONE) & (role != BrokerRole.TAKES)).any(axis=1),
        "stand in fewer racks than they could": breaks_rack_rule(brokers, after, racks_needed(plan.before)),
        "prefer a lost replica though another could lead": passes_over(plan.before, after),
    }
    return [
        f"{rows.sum()} partitions {what}, the first in row {np.argmax(rows)}"
        for what, rows in broken.items()
        if rows.any()
    ]


def _has_twice(replicas: Indexes) -> Mask:
    ordered = np.sort(replicas, axis=1)
    return np.asarray(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NONE)).any(axis=1))


def unsafe_before(brokers: Brokers, plan: ReassignmentPlan) -> int:
    """Return how many partitions broke the rack rule before the plan."""
    return int(np.count_nonzero(breaks_rack_rule(brokers, plan.before.replicas, racks_needed(plan.before))))
