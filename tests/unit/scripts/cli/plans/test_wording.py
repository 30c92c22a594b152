"""Plans and what has changed of them in words: the first lines, and none longer than people read."""

from __future__ import annotations

import pytest

from quorate.controller.api.answers.plan_models import PLAN_FORMAT, ChangePlan, Fact, FactValue, PlannedChange, PlanStep
from quorate.controller.plans.differences import differences
from quorate.controller.protocol import AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic
from quorate.scripts.cli.plans.apply import refuse_changed
from quorate.scripts.cli.plans.steps import StepStanding
from quorate.scripts.cli.plans.wording import plan_lines
from quorate.scripts.terminal.programs.failures import Failed


def moves(count: int, first: int = 0) -> PlanStep:
    partitions = [ReassignablePartition(partition_index=first + one, replicas=[11]) for one in range(count)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=partitions)])
    return PlanStep(change=PlannedChange(alter_partition_reassignments=request), facts=[], waits=True)


def plan(*steps: PlanStep) -> ChangePlan:
    return ChangePlan(
        format=PLAN_FORMAT,
        version=1,
        cluster_id="c",
        state_offset=1,
        made_ms=1,
        made_by="brokers drain",
        steps=list(steps),
    )


def test_of_thousands_of_changes_the_first_ten_are_shown_and_the_number_of_others() -> None:
    waves = plan(*(moves(6, first) for first in range(0, 6_000, 6)))
    lines = list(plan_lines(waves, "--all shows all"))[1:]
    assert lines[0] == "1. 6 changes, then waits"
    assert lines[7] == "2. 6 changes, then waits"
    assert [line.split()[1] for line in lines if line.startswith("  move")] == [f"orders-{at}" for at in range(10)]
    assert lines[-1] == "  ... and 5,990 more (--all shows all)"
    assert len(lines) == 10 + 2 + 1
    assert len(list(plan_lines(waves, None))) == 1 + 1_000 + 6_000


def fact(values: dict[str, FactValue], about: str = "topic orders") -> Fact:
    return Fact(about=about, values=values)


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        (fact({"id": "a", "partitions": "3"}), fact({"id": "a", "partitions": 3}), "has 3 partitions, not '3'"),
        (fact({"x": "1,2"}, "y"), fact({"x": [1, 2]}, "y"), "y: x is 1,2, not '1,2'"),
        (fact({"x": "not set"}, "y"), fact({"x": None}, "y"), "y: x is not set, and was 'not set'"),
    ],
)
def test_values_that_read_alike_are_told_apart(then: Fact, now: Fact, says: str) -> None:
    (sentence,) = differences([then], [now])
    assert sentence.endswith(says)


def test_text_out_of_a_file_is_shown_in_one_line_that_people_can_read() -> None:
    changes = differences([fact({"x": 1}, "\x1b[2J" + "y" * 1_000_000)] * 12, [])
    with pytest.raises(Failed) as refused:
        refuse_changed([StepStanding("changed", changes)])
    first, *_, more, last = refused.value.sentences
    assert first.startswith("\\u001b[2Jyyy")
    assert first.endswith("... (1,000,029 characters)")
    assert (len(first) < 600, len(refused.value.sentences)) == (True, 12)
    assert more == "... and 2 more changes"
    assert last == "that has changed since the plan was made; nothing was done"
