"""What `quorate undo --last` means: which requests of a log stand, by their ids."""

from __future__ import annotations

import pytest

from quorate.scripts.cli.plans.plan_ids import last_change, undo_id

#: The ids of a log, oldest first, and those of the change that stands last.
LOGS = {
    "another step of a plan": (["plan:x:1", "plan:x:10", "undo:plan:x:10:1"], ["plan:x:1"]),
    "a longer id": (["a1", "a10", "undo:a10:1", "undo:a10:2"], ["a1"]),
    "a whole plan": (["a", "plan:x:1", "plan:x:2", "b", "undo:b:1"], ["plan:x:1", "plan:x:2"]),
    "a plan behind a plan": (["plan:x:1", "plan:x:2", "plan:y:1", "plan:y:2"], ["plan:y:1", "plan:y:2"]),
    "one among the steps": (["plan:x:1", "a", "plan:x:2"], ["plan:x:1", "plan:x:2"]),
    "a whole plan, by one change": (["a", "plan:x:1", "plan:x:2", "undo:plan:x:1"], ["a"]),
    "a step only": (["plan:x:1", "plan:x:2", "plan:x:3", "undo:plan:x:2:1"], ["plan:x:1", "plan:x:3"]),
    "a request called as steps are": (["job", "job:7", "undo:job:1"], ["job:7"]),
    "one called as its steps are": (["job", "job:6", "job:7"], ["job:7"]),
    "the way back taken back": (["a", "b", "undo:b:1", "undo:undo:b:1"], ["b"]),
    "and taken back again": (["a", "b", "undo:b:1", "undo:undo:b:1", "undo:b:1"], ["a"]),
    "one step of the way back": (["a", "b", "undo:b:1", "undo:b:2", "undo:undo:b:2:1"], ["a"]),
    "a plan that was taken back, and that taken back": (
        ["plan:x:1", "plan:x:2", "undo:plan:x:1", "undo:undo:plan:x:1"],
        ["plan:x:1", "plan:x:2"],
    ),
    "nothing": (["a", "undo:a:1"], []),
}


@pytest.mark.parametrize("log", LOGS)
def test_last_change_that_stands(log: str) -> None:
    ids, expected = LOGS[log]
    assert [ids[place] for place in last_change(ids)] == expected


def test_ids_that_are_too_long_are_told_apart() -> None:
    one, other = "x" * 63 + "1", "x" * 63 + "2"
    assert len(f"{undo_id(one)}:10000") == 64
    assert last_change([one, other, f"{undo_id(other)}:1"]) == [0]
    assert undo_id(undo_id(one)) != undo_id(undo_id(other))
