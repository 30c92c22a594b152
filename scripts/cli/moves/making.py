"""Plans are made: the planner's arrays become values with names. Commands import it when they plan: it takes numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from quorate.controller.planning.cluster import (
    NONE,
    BrokerRole,
    ClusterLayout,
    Indexes,
    NoPlan,
    ReassignmentPlan,
    TooFewBrokers,
    counts_of,
)
from quorate.controller.planning.exchange import breaks_rack_rule
from quorate.controller.planning.rules import racks_needed
from quorate.scripts.cli.moves.layouts import NamedLayout
from quorate.scripts.cli.moves.plans import BrokerBeforeAfter, MovePlan, PlannedMove, RackBeforeAfter, first_names

_ROLES = {BrokerRole.TAKES: "takes", BrokerRole.KEEPS: "keeps", BrokerRole.DRAINS: "drained"}


def made_plan(named: NamedLayout, planner: Callable[[ClusterLayout], ReassignmentPlan]) -> MovePlan:
    """The plan that a planner makes, with the names of partitions and brokers.

    Raises:
        NoPlan: there are too few brokers for the replicas of some topics, which are named.
    """
    try:
        plan = planner(named.layout)
    except TooFewBrokers as error:
        raise NoPlan(f"{error}; {_why_too_few(named, error)}") from None
    before, ids = plan.before, plan.before.brokers.ids.tolist()
    moves = [
        PlannedMove(
            topic=named.names[row][0],
            partition=named.names[row][1],
            before=[ids[one] for one in before.replicas[row].tolist() if one != NONE],
            after=[ids[one] for one in plan.after[row].tolist() if one != NONE],
        )
        for row in plan.changed.tolist()
    ]
    moving = {move.name for move in moves}
    return MovePlan(
        moves=moves,
        copies=plan.moves,
        brokers=(brokers := list(_broker_lines(named, plan))),
        racks=list(_rack_lines(brokers)),
        crowded_before=_crowded(before, before.replicas),
        crowded_after=_crowded(before, plan.after),
        in_motion=sorted(f"{topic}-{number}" for topic, number in named.in_motion),
        leaderless=[f"{topic}-{number}" for topic, number in named.leaderless if (topic, number) in moving],
    )


def _why_too_few(named: NamedLayout, error: TooFewBrokers) -> str:
    topics = sorted({named.names[row][0] for row in error.rows.tolist()})
    brokers = named.layout.brokers
    takers = int(np.count_nonzero(brokers.takers))
    taking = "1 broker takes replicas" if takers == 1 else f"{takers:,} brokers take replicas"
    drained = ", ".join(map(str, brokers.ids[brokers.roles == BrokerRole.DRAINS].tolist()))
    emptied = f"; to be emptied: broker {drained}" if drained else ""
    idle = [
        f"{id_} ({named.states.get(id_, 'unregistered')})"
        for id_ in brokers.ids[brokers.roles == BrokerRole.KEEPS].tolist()
    ]
    nothing_to = f"; nothing goes to broker {', '.join(idle)}" if idle else ""
    return f"topics {first_names(topics)}; {taking}{emptied}{nothing_to}"


def _crowded(layout: ClusterLayout, replicas: Indexes) -> int:
    """The number of partitions that stand in fewer racks than they could, if all of their replicas might move."""
    if not len(replicas):
        return 0
    after = ClusterLayout(layout.brokers, replicas)
    return int(np.count_nonzero(breaks_rack_rule(layout.brokers, replicas, racks_needed(after))))


def _broker_lines(named: NamedLayout, plan: ReassignmentPlan) -> Iterator[BrokerBeforeAfter]:
    brokers = plan.before.brokers
    others = plan.before.other_loads
    besides = np.zeros(len(brokers), np.int64) if others is None else others
    befores = (counts_of(plan.before.replicas, len(brokers)) + besides).tolist()
    afters = (counts_of(plan.after, len(brokers)) + besides).tolist()
    for at, id_ in enumerate(brokers.ids.tolist()):
        yield BrokerBeforeAfter(
            broker=id_,
            state=named.states.get(id_, "unregistered"),
            rack=brokers.rack_names[brokers.racks[at]] if brokers.rack_names else None,
            role=_ROLES[BrokerRole(brokers.roles[at])],
            replicas_before=befores[at],
            replicas_after=afters[at],
        )


def _rack_lines(brokers: list[BrokerBeforeAfter]) -> Iterator[RackBeforeAfter]:
    for rack in sorted({one.rack for one in brokers if one.rack is not None}):
        inside = [one for one in brokers if one.rack == rack]
        yield RackBeforeAfter(
            rack=rack,
            replicas_before=sum(one.replicas_before for one in inside),
            replicas_after=sum(one.replicas_after for one in inside),
        )
