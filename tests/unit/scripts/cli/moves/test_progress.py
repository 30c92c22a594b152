"""The words in which moves are watched."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from quorate.scripts.cli.moves.progress import MoveProgress, Stall, progress_words


@pytest.mark.parametrize(
    ("ended", "seconds", "words"),
    [
        (0, 9.0, "0 of 800 moved, 50 on their way"),
        (200, 10.0, "200 of 800 moved, 50 on their way, 20.0 a second, about 0 min 30 s left"),
        (1, 10.0, "1 of 800 moved, 50 on their way, 0.1 a second, about 133 min 10 s left"),
    ],
)
def test_progress_says_the_rate_and_the_time_left_once_something_has_ended(
    ended: int, seconds: float, words: str
) -> None:
    assert progress_words(ended, 800, 50, seconds) == words


@pytest.mark.parametrize(
    ("stall", "words"),
    [
        (Stall(12, "fenced", ["a-0"]), "a-0 wait for broker 12, which is fenced"),
        (
            Stall(12, "active", [f"a-{n}" for n in range(5)]),
            "a-0, a-1, a-2 and 2 more wait for broker 12, which has",
        ),
        (Stall(12, "unregistered", ["a-0"]), "which is unregistered"),
    ],
)
def test_stall_names_partitions_and_says_why_the_broker_is_waited_for(stall: Stall, words: str) -> None:
    assert words in stall.words


def test_progress_without_a_terminal_tells_of_a_stall_once(monkeypatch: pytest.MonkeyPatch) -> None:
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with MoveProgress() as progress:
        for stalls in ([], [Stall(12, "fenced", ["a-0"])], [Stall(12, "fenced", ["a-0", "a-1"])]):
            progress.show(1, 2, 1, stalls)
    lines = err.getvalue().splitlines()
    assert lines[0] == "quorate: a-0 wait for broker 12, which is fenced"
    assert lines[1].startswith("quorate: 1 of 2 moved, 1 on their way")
    assert len(lines) == 2


def test_moves_of_others_that_leave_no_room_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    theirs = [f"a-{number}" for number in range(5)]
    with MoveProgress() as progress:
        for others in ([], theirs, theirs[1:], [], theirs[:1]):
            progress.show(0, 2, 0, [], others)
    lines = [line for line in err.getvalue().splitlines() if "moved" not in line]
    why = "quorate: nothing can begin: as many reassignments as --at-once allows are open, those of others:"
    assert lines == [f"{why} a-0, a-1, a-2 and 2 more", f"{why} a-0"]
