"""The line about what takes long: on a terminal, in a file, and where a program reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO

import pytest

from quorate.scripts.terminal.progress import line
from quorate.scripts.terminal.progress.amounts import duration, megabytes, rate
from quorate.scripts.terminal.progress.line import answering_programs, telling
from tests.waiting import eventually_sync


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard error on a pseudo-terminal; its other end."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        yield ours
    os.close(ours)


def read(ours: int) -> str:
    """All that is there; a terminal gives it in pieces."""
    seen = b""
    with suppress(BlockingIOError):
        while True:
            seen += os.read(ours, 65_536)
    return seen.decode()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_FIRST_S", 0.01)
    monkeypatch.setattr(line, "_REDRAW_S", 0.01)
    monkeypatch.setattr(line, "_EACH_S", 0.01)


@pytest.mark.parametrize("is_json", [False, True])
def test_on_a_terminal_it_rewrites_itself_and_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, is_json: bool
) -> None:
    seen, counted = "", iter(range(1_000_000))
    with terminal(monkeypatch) as ours:

        def is_drawn_twice() -> bool:
            nonlocal seen
            seen += read(ours)
            return "\r\x1b[Kquorate: 1 of all\r\x1b[Kquorate: 2 of all" in seen

        with answering_programs(is_json), telling(lambda _: f"{next(counted)} of all"):
            eventually_sync(is_drawn_twice, "it is drawn again")
        assert read(ours).endswith("\r\x1b[K")
    assert "\n" not in seen


def test_what_is_said_stays_above_and_too_long_a_line_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ""
    with terminal(monkeypatch) as ours:

        def is_drawn() -> bool:
            nonlocal seen
            seen += read(ours)
            return "quorate: xxx" in seen

        with telling(lambda _: "x" * 500) as shown:
            eventually_sync(is_drawn, "it is drawn")
            shown.say("broker 12 is fenced")
            seen += read(ours)
    assert "\r\x1b[Kquorate: broker 12 is fenced" in seen
    assert len(seen.split("\r\x1b[K")[1]) < 80


def test_without_a_terminal_it_is_a_line_now_and_then_and_standard_output_is_free(
    capsys: pytest.CaptureFixture[str],
) -> None:
    err = ""

    def are_two() -> bool:
        nonlocal err
        err += capsys.readouterr().err
        return err.count("\n") >= 2

    with telling(lambda _: "1 of all"), telling(lambda _: "within"):
        eventually_sync(are_two, "two lines")
    assert set(err.splitlines()) == {"quorate: 1 of all"}
    assert capsys.readouterr().out == ""


def test_nothing_is_drawn_where_a_program_reads_and_what_must_be_known_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[float] = []

    def words(seconds: float) -> str:
        asked.append(seconds)
        return "1 of all"

    with answering_programs(True), telling(words) as shown:
        shown.say("stop broker 12 now")
    assert (capsys.readouterr().err, asked) == ("quorate: stop broker 12 now\n", [])
    assert not shown._thread.is_alive()
    assert shown._thread.ident is None, "nobody draws"


def test_reader_that_has_gone_ends_the_drawing_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    with telling(lambda _: "1 of all") as shown:
        eventually_sync(lambda: not shown._thread.is_alive(), "the drawing has ended")


@pytest.mark.parametrize(
    ("done", "total", "seconds", "words"),
    [
        (0, 2805, 9.0, ""),
        (1875, 2805, 60.0, ", 31.2 a second, about 30 s left"),
        (5, 2805, 0.5, ""),
        (2805, 2805, 60.0, ", 46.8 a second"),
    ],
)
def test_rate_and_rest_are_told_once_they_are_known(done: int, total: int, seconds: float, words: str) -> None:
    assert rate(done, total, seconds) == words


def test_bytes_are_megabytes_and_long_times_are_hours() -> None:
    assert megabytes(2_500_000, 10_000_000, 5.0) == "2.5 of 10.0 MB, 0.5 MB a second, about 15 s left"
    assert megabytes(0, 1_234_500_000, 5.0, "at most") == "0.0 of at most 1,234.5 MB"
    assert [duration(59.4), duration(65.0), duration(7_260.0)] == ["59 s", "1 min 5 s", "2 h 1 min"]
