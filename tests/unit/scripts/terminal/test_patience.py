"""What a command says while nobody answers it."""

from __future__ import annotations

import sys

import pytest

from quorate.scripts.terminal import patience
from quorate.scripts.terminal.patience import telling_who_is_waited_for
from tests.waiting import eventually

WAITED_FOR = ["http://127.0.0.1:1", "http://127.0.0.1:2\x1b[2J"]


@pytest.mark.parametrize(
    ("is_terminal", "first", "each", "told"),
    [(True, 0.01, 60.0, 1), (True, 0.01, 0.02, 3), (False, 60.0, 0.02, 3)],
)
async def test_who_is_waited_for_is_said_again_and_again_and_rarely_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
    first: float,
    each: float,
    told: int,
) -> None:
    monkeypatch.setattr(patience, "_FIRST_SECONDS", first)
    monkeypatch.setattr(patience, "_EACH_SECONDS", each)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    said = ""

    async def looked() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return said.count("\n") >= told

    with telling_who_is_waited_for(WAITED_FOR):
        await eventually(looked, "it is said")
    for line in said.splitlines():
        assert line.startswith(
            "quorate: no answer yet from http://127.0.0.1:1, http://127.0.0.1:2\\u001b[2J, after 0 s"
        )
