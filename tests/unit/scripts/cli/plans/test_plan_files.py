"""A plan that no `quorate apply` would take is not written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.controller.api.answers.plan_models import PLAN_FORMAT, ChangePlan, Fact, PlannedChange, PlanStep
from quorate.controller.protocol import DeleteTopicsRequest
from quorate.scripts.cli.plans.plan_files import PlanTooLarge, read_plan, save_plan, write_plan

CHANGE = PlannedChange(delete_topics=DeleteTopicsRequest(topic_ids=[bytes(15) + b"a"]))
#: Nobody listens there, and nobody is to be asked.
NOBODY = "127.0.0.1:1"


def plan_of(facts: int) -> ChangePlan:
    """Facts of a thousand bytes each."""
    known = [Fact(about="topic orders", values={"id": "x" * 1_000})] * facts
    step = PlanStep(change=CHANGE, facts=known, waits=False)
    return ChangePlan(
        format=PLAN_FORMAT, version=1, cluster_id="c", state_offset=1, made_ms=1, made_by="topics delete", steps=[step]
    )


def test_plan_of_too_many_steps_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(PlanTooLarge, match=r"the plan would have 10,001 steps: 10,000 is the most.* --at-once"):
        write_plan(tmp_path / "plan.json", "brokers drain", [CHANGE] * 10_001, NOBODY, None, waits=True)
    assert list(tmp_path.iterdir()) == []


def test_plan_of_too_many_bytes_is_refused_and_one_of_fewer_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    with pytest.raises(PlanTooLarge, match=r"the plan would have [0-9,]+ bytes: 67,108,864 is the most"):
        save_plan(file, plan_of(70_000))
    assert list(tmp_path.iterdir()) == []
    save_plan(file, plan_of(50_000))
    assert len(read_plan(file).steps[0].facts) == 50_000
