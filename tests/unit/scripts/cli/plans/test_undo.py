"""Which requests `quorate undo` finds, where the log is read in stretches from one checkpoint to the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from quorate.controller.plans.written_requests import WrittenLog, WrittenRequest
from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.scripts.cli.logs.audit_sources import AllSources
from quorate.scripts.cli.logs.history_places import Log
from quorate.scripts.cli.plans import undo
from quorate.snapshots.checkpoints.stretches import LogStretch
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay_state import ReplayState


def found(monkeypatch: pytest.MonkeyPatch, request_id: str | None, *stretches: Sequence[str]) -> tuple[list[str], str]:
    """The ids that are found and the one they are taken back by, in a log of these ids, the newest stretch last."""
    ids = [one for stretch in stretches for one in stretch]
    offsets = {one: offset for offset, one in enumerate(ids)}

    def written(start: ReplayState, batches: Sequence[Any], *_: object) -> WrittenLog:
        lines = [
            AuditLine(1, at, at + 1, "create_topics", "User:ana", None, one) for one in batches for at in [offsets[one]]
        ]
        return WrittenLog([WrittenRequest(line, 0, EMPTY_IMAGE, EMPTY_IMAGE) for line in lines], EMPTY_IMAGE, [])

    @contextmanager
    def places(*_: object) -> Iterator[tuple[Log, AllSources]]:
        read = (LogStretch(ReplayState(), stretch) for stretch in reversed(stretches))  # type: ignore[arg-type]
        yield Log(read, "cluster"), AllSources([])

    monkeypatch.setattr(undo, "written_requests", written)
    monkeypatch.setattr(undo, "places", places)
    past = undo._find(request_id, None, None)
    return [one.line.request_id or "" for one in past.requests], past.name


PLAN = ["plan:x:1", "plan:x:2", "plan:x:3"]


@pytest.mark.parametrize("request_id", [None, "plan:x"])
def test_steps_of_a_plan_on_both_sides_of_a_checkpoint_are_all_found(
    monkeypatch: pytest.MonkeyPatch, request_id: str | None
) -> None:
    assert found(monkeypatch, request_id, ["a", *PLAN[:1]], [PLAN[1]], [PLAN[2]]) == (PLAN, "plan:x")
    assert found(monkeypatch, request_id, ["a", *PLAN], ["undo:b:1"]) == (PLAN, "plan:x")


def test_of_a_plan_whose_begin_was_cut_off_the_log_the_rest_is_the_last_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, None, PLAN[1:2], PLAN[2:]) == (PLAN[1:], "plan:x")
    with pytest.raises(undo.NothingToUndo, match="no change by request 'plan:x'"):
        found(monkeypatch, "plan:x", PLAN[1:2], PLAN[2:])


def test_a_last_change_of_its_own_is_found_in_the_newest_stretch_that_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, None, PLAN, ["a", "b"], ["undo:c:1"]) == (["b"], "b")
    assert found(monkeypatch, "a", PLAN, ["a", "b"]) == (["a"], "a")


def read(ends: Sequence[int], committed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The end of the log that the last change is taken out of, where it is read again and again with these ends."""
    left = list(ends)

    def find(*_: object) -> undo._Past:
        end = left.pop(0) if len(left) > 1 else left[0]
        return undo._Past([], EMPTY_IMAGE._replace(provenance=Provenance(end - 1, 1, 0)), "", "", [])

    monkeypatch.setattr(undo, "_find", find)
    monkeypatch.setattr(undo, "_LOOK_AGAIN_S", 0)
    monkeypatch.setattr(undo, "ask", lambda *_: committed)
    return undo._last(None, None).now.provenance.end_offset


def test_last_change_is_that_of_a_log_that_has_all_that_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read([10], 10, monkeypatch) == 10
    assert read([12], 10, monkeypatch) == 12
    assert read([7, 8, 11], 10, monkeypatch) == 11
    monkeypatch.setattr(undo, "_LAG_S", 0)
    with pytest.raises(undo.NothingToUndo, match=r"ends at offset 9, and there are 10 records$"):
        read([9], 10, monkeypatch)
