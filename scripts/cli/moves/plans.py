"""A plan of moves as a plain value, and the words that show it before anything is done."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from quorate.scripts.cli.topics.partition_rows import ids_text
from quorate.scripts.terminal.output import counted
from quorate.scripts.terminal.tables import columns

_SHOWN_MAX = 10

#: A topic's name and a partition's number.
PartitionName = tuple[str, int]


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
        yield f"Moving already: {first_names(plan.in_motion)}."
    if plan.leaderless:
        yield f"Without a leader to copy from, so they wait until they have one: {first_names(plan.leaderless)}."


def _change(one: BrokerBeforeAfter | RackBeforeAfter) -> str:
    change = one.replicas_after - one.replicas_before
    return f"{one.replicas_after} ({change:+})" if change else str(one.replicas_after)


def first_names(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
