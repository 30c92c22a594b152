"""docs/exit-codes.md: what it says of all commands, and of single ones, against the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.cli.status import FailOn, exit_code_of
from quorate.scripts.terminal import exit_codes
from tests.unit.scripts.cli.test_reading_commands import leaves_of_all

PAGE = (Path(__file__).parents[4] / "docs" / "exit-codes.md").read_text(encoding="utf-8")
#: Of the codes that a help text names: at its begin, or behind the one before.
OF_HELP = re.compile(r"(?:[Ee]xit code(?: as of diff:)? |[;,] )(\d+)\b")


def test_table_of_codes_is_that_of_the_code() -> None:
    """Programs go by them: none is changed, and a new one is told."""
    told = {name: int(code) for code, name in re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", PAGE, re.MULTILINE)}
    assert told == {name: value for name, value in vars(exit_codes).items() if name.isupper()}
    assert told == {
        "DONE": 0, "REFUSED": 1, "USAGE": 2, "UNREACHABLE": 3, "OUTCOME_UNKNOWN": 4, "CRITICAL": 5, "FAULT": 70,
        "INTERRUPTED": 130,
    }  # fmt: skip


def codes_of_help(command: Any) -> set[int]:
    text = " ".join((command.help or "").split())
    begin = re.search(r"[Ee]xit code", text)
    return set() if begin is None else {int(code) for code in OF_HELP.findall(text[begin.start() :])}


def test_codes_of_single_commands_are_those_of_their_help() -> None:
    helps = {name: codes_of_help(command) for name, command in leaves_of_all()}
    rows = re.findall(r"^\| `([a-z -]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    told = {name: {int(code) for code in re.findall(r"(?:^|; )(\d+): ", codes)} for name, codes in rows}
    assert told == {name: codes for name, codes in helps.items() if codes}


@pytest.mark.parametrize(
    ("verdict", "degraded", "critical"),
    [
        ("healthy", 0, 0), ("degraded", 1, 0), ("critical", 5, 5), ("no-quorum", 3, 3), ("refused", 3, 3),
        ("unreachable", 3, 3),
    ],
)  # fmt: skip
def test_status_fails_from_the_verdict_on_that_is_named(verdict: str, degraded: int, critical: int) -> None:
    assert (exit_code_of(verdict, FailOn.DEGRADED), exit_code_of(verdict, FailOn.CRITICAL)) == (degraded, critical)
