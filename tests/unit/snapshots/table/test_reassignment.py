"""The table of reassignments: the page shows it, a wrong step is refused by its reason, each right one has a name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from quorate.snapshots.table.reassignment import (
    STEPS,
    Assignment,
    ReassignmentState,
    ReassignmentStep,
    WrongStep,
    step_between,
)

PAGE: Final = Path(__file__).parents[4] / "docs" / "operations.md"
SETTLED: Final = Assignment((1, 2, 3), (), ())
#: 1 goes, 4 comes.
OPEN: Final = Assignment((4, 2, 3, 1), (4,), (1,))


def drawn() -> str:
    """The table as the page has it: a line for each step, a column for each state."""
    lines = [["what happens", *(state.value for state in ReassignmentState)], ["---"] * (1 + len(ReassignmentState))]
    for step in ReassignmentStep:
        following = [STEPS[state].get(step) for state in ReassignmentState]
        lines.append([step.value, *("" if state is None else state.value for state in following)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines).replace("|  |", "| |")


def test_page_shows_the_table() -> None:
    assert drawn() in PAGE.read_text(encoding="utf-8"), f"docs/operations.md lacks this table:\n{drawn()}"


@pytest.mark.parametrize(
    ("old", "new", "isr", "step"),
    [
        (SETTLED, OPEN, [1, 2, 3], ReassignmentStep.STARTED),
        (SETTLED, Assignment((2, 3), (), ()), [1, 2, 3], ReassignmentStep.MOVED_AT_ONCE),
        (SETTLED, Assignment((3, 2, 1), (), ()), [1], ReassignmentStep.MOVED_AT_ONCE),
        (OPEN, Assignment((5, 2, 3, 4, 1), (5,), (1, 4)), [1, 2, 3], ReassignmentStep.REPLACED),
        (OPEN, Assignment((4, 2, 3), (), ()), [4, 2], ReassignmentStep.COMPLETED),
        (OPEN, Assignment((2, 3, 1), (), ()), [1], ReassignmentStep.CANCELLED),
        (OPEN, Assignment((2, 4), (), ()), [4, 2], ReassignmentStep.MOVED_AT_ONCE),
        (OPEN, OPEN, [4, 2], None),
    ],
)
def test_change_that_a_step_makes_has_its_name(
    old: Assignment, new: Assignment, isr: list[int], step: ReassignmentStep | None
) -> None:
    assert step_between(old, new, isr) is step
    assert step is None or STEPS[old.state][step] is new.state


@pytest.mark.parametrize(
    ("old", "new", "isr", "why"),
    [
        (SETTLED, Assignment((1, 2, 4), (), ()), [1, 2, 4], "a replica comes that was not being added"),
        (SETTLED, Assignment((1, 2), (), ()), [1, 3], r"it ends without \[2\] in the ISR"),
        (SETTLED, Assignment((1, 2, 3, 4), (), (1,)), [1], "a replica comes that is not being added"),
        (SETTLED, Assignment((4, 2, 1), (4,), (1,)), [1], "a replica goes while the reassignment is open"),
        (SETTLED, Assignment((1, 2, 3), (3,), ()), [1], "a broker is being added that is a replica already"),
        (OPEN, Assignment((4, 2, 3), (), ()), [2, 3], r"it ends without \[4\] in the ISR"),
        (OPEN, Assignment((5, 2, 3), (), ()), [2, 3], "a replica comes that was not being added"),
        (OPEN, Assignment((4, 2, 3), (4,), ()), [2, 3], "a replica goes while the reassignment is open"),
    ],
)
def test_change_that_no_step_makes_is_refused_with_both_assignments(
    old: Assignment, new: Assignment, isr: list[int], why: str
) -> None:
    with pytest.raises(WrongStep, match=why) as refused:
        step_between(old, new, isr)

    assert f"from {old} to {new}" in str(refused.value)


def test_step_that_the_table_does_not_have_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS, ReassignmentState.SETTLED, {})

    with pytest.raises(WrongStep, match="not in the state SETTLED: STARTED"):
        step_between(SETTLED, OPEN, [1])
