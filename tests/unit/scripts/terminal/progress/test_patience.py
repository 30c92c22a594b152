"""What a command says while nobody answers it."""

from __future__ import annotations

import re
import sys

import pytest

from quorate.metadata_log.errors import Overloaded
from quorate.scripts.terminal.progress import line
from quorate.scripts.terminal.progress.patience import telling_who_is_waited_for
from tests.waiting import eventually_sync

WAITED_FOR = ["http://127.0.0.1:1", "http://127.0.0.1:2\x1b[2J"]


def test_who_is_waited_for_is_said_again_and_again_and_nothing_of_theirs_moves_the_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(line, "_EACH_S", 0.02)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    said = ""

    def is_said() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return said.count("\n") >= 3

    with telling_who_is_waited_for(WAITED_FOR):
        eventually_sync(is_said, "it is said three times")
    for one in said.splitlines():
        assert re.fullmatch(
            r"quorate: no answer yet from http://127.0.0.1:1, http://127.0.0.1:2\\u001b\[2J after \d+ s; Ctrl-C ends "
            r"the waiting",
            one,
        )


def test_refusal_of_one_that_has_too_much_to_do_is_said_as_long_as_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(line, "_EACH_S", 0.02)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    refusal: Overloaded | None = Overloaded("4096 requests\x1b wait")
    said = ""

    def is_said() -> bool:
        nonlocal said, refusal
        said += capsys.readouterr().err
        if said:
            refusal = None
        return said.count("\n") >= 3

    with telling_who_is_waited_for(WAITED_FOR[:1], lambda: refusal):
        eventually_sync(is_said, "it is said, and then that nobody answers")
    first, *_, last = said.splitlines()
    assert first.startswith("quorate: not done after 0 s, and asked again when http://127.0.0.1:1 said; Ctrl-C ends ")
    assert first.endswith(": 4096 requests\\u001b wait")
    assert last.startswith("quorate: no answer yet from http://127.0.0.1:1 after ")
