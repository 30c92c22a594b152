"""A plan of moves as a plain value, and the words that show it before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from pydantic import BaseModel, ConfigDict

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
from quorate.scripts.cli.moves.layouts import NamedLayout, PartitionName
from quorate.scripts.cli.topics.partition_rows import ids_text
from quorate.scripts.terminal.output import columns, counted

_ROLES = {BrokerRole.TAKES: "takes", BrokerRole.KEEPS: "keeps", BrokerRole.DRAINS: "drained"}
_SHOWN_MAX = 10


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class PlannedMove(_Value):
    """A partition, its replicas, and those that it is to have; the preferred leader first."""

    topic: str
    partition: int
    before: list[int]
    after: list[int]

    @property
    def name(self) -> PartitionName:
        """Its topic and number."""
        return self.topic, self.partition


class BrokerBeforeAfter(_Value):
    """A broker's part in a plan."""

    broker: int
    #: "unregistered" where there is no such broker any more.
    state: str
    rack: str | None
    #: "takes" its share, "keeps" what it has and gets nothing, or is "drained".
    role: str
    replicas_before: int
    replicas_after: int


class RackBeforeAfter(_Value):
    """The replicas in a rack."""

    rack: str
    replicas_before: int
    replicas_after: int


class MovePlan(_Value):
    """Moves for a purpose, and what they make of the cluster."""

    moves: list[PlannedMove]
    #: Replicas that come to a broker, and are copied there. How many bytes these have no controller knows.
    copies: int
    brokers: list[BrokerBeforeAfter]
    racks: list[RackBeforeAfter]
    #: Of the partitions looked at, those that stand in fewer racks than they could.
    crowded_before: int
    crowded_after: int
    #: Partitions looked at that are on their way already, as `topic-number`.
    in_motion: list[str]
    #: Partitions that move and have no leader: nobody is there to copy from before one is back.
    leaderless: list[str]


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
    idle = [
        f"{id_} ({named.states.get(id_, 'unregistered')})"
        for id_, role in zip(brokers.ids.tolist(), brokers.roles.tolist(), strict=True)
        if role == BrokerRole.KEEPS
    ]
    nothing_to = f"; nothing goes to broker {', '.join(idle)}" if idle else ""
    return f"topics {_named(topics)}{nothing_to}"


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


def plan_lines(plan: MovePlan) -> Iterator[str]:
    """The plan for people: what moves, and brokers and racks before and after."""
    reordered = sum(set(move.before) == set(move.after) for move in plan.moves)
    orders = f", {reordered} of them in the order of their replicas only" if reordered else ""
    yield f"{counted(len(plan.moves), 'partition')} to change{orders}; {counted(plan.copies, 'replica')} to be copied."
    yield from columns(
        [
            ("BROKER", "STATE", "RACK", "ROLE", "REPLICAS", "AFTER"),
            *(
                (str(one.broker), one.state, one.rack or "-", one.role, str(one.replicas_before), _change(one))
                for one in plan.brokers
            ),
        ]
    )
    if plan.racks:
        yield from columns(
            [("RACK", "REPLICAS", "AFTER"), *((one.rack, str(one.replicas_before), _change(one)) for one in plan.racks)]
        )
        yield f"In fewer racks than they could be: {plan.crowded_before} before, {plan.crowded_after} after."
    for move in plan.moves[:_SHOWN_MAX]:
        yield f"{move.topic}-{move.partition}: {ids_text(move.before)} -> {ids_text(move.after)}"
    if len(plan.moves) > _SHOWN_MAX:
        yield f"and {len(plan.moves) - _SHOWN_MAX} more (--json names all)"
    if plan.in_motion:
        yield f"On their way already: {_named(plan.in_motion)}."
    if plan.leaderless:
        yield f"Without a leader to copy from, so they wait until they have one: {_named(plan.leaderless)}."


def _change(one: BrokerBeforeAfter | RackBeforeAfter) -> str:
    change = one.replicas_after - one.replicas_before
    return f"{one.replicas_after} ({change:+})" if change else str(one.replicas_after)


def _named(names: list[str]) -> str:
    more = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
