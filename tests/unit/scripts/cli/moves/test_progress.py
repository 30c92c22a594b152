"""The words in which moves are watched."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from quorate.scripts.cli.moves.progress import MoveProgress, Stall


@pytest.mark.parametrize(
    ("ended", "seconds", "stalls", "words"),
    [
        (0, 9.0, [], "0 of 2,805 moved; 930 under way"),
        (1875, 60.0, [], "1,875 of 2,805 moved; 930 under way, 31.2 a second, about 30 s left"),
        (
            1875,
            0.0,
            [Stall(12, "fenced", [f"a-{n}" for n in range(930)]), Stall(13, "active", ["b-0"])],
            "1,875 of 2,805 moved; 930 wait for broker 12, fenced; 1 waits for broker 13, not caught up; 930 under way",
        ),
    ],
)
def test_progress_says_the_rate_the_time_left_and_what_stalls(
    ended: int, seconds: float, stalls: list[Stall], words: str
) -> None:
    with MoveProgress() as progress:
        progress.show(ended, 2_805, 930, stalls)
        assert progress.words(seconds) == words


@pytest.mark.parametrize(
    ("stall", "words"),
    [
        (Stall(12, "fenced", ["a-0"]), "a-0 waits for broker 12, which is fenced"),
        (
            Stall(12, "active", [f"a-{n}" for n in range(5)]),
            "a-0, a-1, a-2 and 2 more wait for broker 12, which has",
        ),
        (Stall(12, "unregistered", ["a-0"]), "which is unregistered"),
    ],
)
def test_stall_names_partitions_and_says_why_the_broker_is_waited_for(stall: Stall, words: str) -> None:
    assert words in stall.words


def test_stall_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with MoveProgress() as progress:
        for stalls in ([], [Stall(12, "fenced", ["a-0"])], [Stall(12, "fenced", ["a-0", "a-1"])]):
            progress.show(1, 2, 1, stalls)
    assert err.getvalue() == "quorate: a-0 waits for broker 12, which is fenced\n"


def test_moves_of_others_that_leave_no_room_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    theirs = [f"a-{number}" for number in range(5)]
    with MoveProgress() as progress:
        for others in ([], theirs, theirs[1:], [], theirs[:1]):
            progress.show(0, 2, 0, [], others)
    why = "quorate: nothing can begin: as many reassignments as --at-once allows are open, those of others:"
    assert err.getvalue().splitlines() == [f"{why} a-0, a-1, a-2 and 2 more", f"{why} a-0"]
