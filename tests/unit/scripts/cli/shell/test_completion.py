"""The words that complete a line without asking any cluster, and the programs that ask for them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.shell.completion import Shell, words_for
from quorate.scripts.logins.kept_contexts import KeptContext, KeptContexts, write_contexts
from quorate.scripts.terminal.completing.names import NAMES_MAX

Words = Callable[[str], list[str]]


pytestmark = pytest.mark.usefixtures("bare_home")


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Words:
    """Those for a line; what they leave in the environment goes with the process that they are for."""
    for name in ("_QUORATE_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")

    def of(line: str) -> list[str]:
        monkeypatch.delenv("_QUORATE_COMPLETE", raising=False)
        return words_for(line, make_app)

    return of


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("quorate top", ["topics"]),
        ("quorate topics d", ["deletions", "describe", "delete"]),
        ("quorate drill run leader-k", ["leader-kill"]),
        ("quorate configs describe topic/x --name retention.", ["retention.bytes", "retention.ms"]),
        ("quorate configs alter topic/x --set=retention.m", ["retention.ms="]),
        ("quorate configs describe to", ["topic/"]),
        ("quorate topics list --not", ["--not-preferred"]),
        ("quorate topics list --context pr", ["prod"]),
        ("quorate context use ", ["prod", "twin"]),
        ("quorate explain br", ["broker"]),
        ("quorate status --fail-on cri", ["critical"]),
        ("quorate completion z", ["zsh"]),
    ],
)
def test_words_that_are_known_here_complete_a_line(words: Words, line: str, found: list[str]) -> None:
    write_contexts(
        KeptContexts(contexts=(KeptContext(name="prod", controllers="c:1"), KeptContext(name="twin", directory="/")))
    )
    assert words(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "", " ", "quorate", "quorate nothing here", "quorate topics describe 'or", "quorate topics describe or\\",
        "quorate topics list --dir none --context also or", "quorate topics describe --context none or",
        "quorate topics describe --controllers 127.0.0.1:1 or", "quorate topics describe --controllers ::: or",
        "quorate topics describe '", "quorate topics list --limit x or", "quorate " + "x " * 40_000,
        "quorate brokers describe --secret-file none 1",
    ],
)  # fmt: skip
def test_line_that_nothing_completes_is_met_with_silence(
    words: Words,
    line: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert words(line) == []
    assert capfd.readouterr() == ("", "")


def test_whoever_would_have_to_log_in_is_not_asked(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password would be sent, and the login written down."""
    monkeypatch.setenv("QUORATE_USER", "ana")
    monkeypatch.setenv("QUORATE_PASSWORD_FILE", "none")
    monkeypatch.setenv("QUORATE_CONTROLLERS", "127.0.0.1:1")

    async def answers(*_: object) -> list[str]:
        return ["orders"]

    monkeypatch.setattr("quorate.scripts.terminal.completing.names._answer", answers)
    assert words("quorate topics describe or") == []
    for name in ("QUORATE_USER", "QUORATE_PASSWORD_FILE"):
        monkeypatch.delenv(name)
    assert words("quorate topics describe or") == ["orders"]


@pytest.mark.parametrize("shell", Shell)
def test_program_is_one_that_its_shell_reads(shell: Shell, tmp_path: Path) -> None:
    program = CliRunner().invoke(make_app(["completion"]), ["completion", shell.value])
    assert program.exit_code == 0
    assert "quorate" in program.output
    if shutil.which(shell.value) is None:
        pytest.skip(f"{shell.value} is not on this machine")
    file = tmp_path / "program"
    file.write_text(program.output, encoding="utf-8")
    option = "--no-execute" if shell is Shell.FISH else "-n"
    checked = subprocess.run([shell.value, option, str(file)], capture_output=True, text=True, check=False, timeout=20)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_takes_the_words_that_are_answered_and_runs_none(tmp_path: Path) -> None:
    """In the place of the command stands one that answers words which a shell would expand, or run."""
    program = CliRunner().invoke(make_app(["completion"]), ["completion", "bash"]).output
    fake = tmp_path / "quorate"
    fake.write_text(
        f"#!/bin/sh\nprintf '%s' \"$QUORATE_COMPLETE_LINE\" > {tmp_path}/line\necho oops >&2\n"
        f"printf '%s\\n' orders '*' '$(touch {tmp_path}/ran)'\n",
        encoding="utf-8",
    )
    fake.chmod(0o755)
    line = "quorate topics describe or"
    script = (
        f"{program}\nCOMP_LINE='{line} and more'; COMP_POINT={len(line)}; COMP_WORDS=({fake} topics describe or)\n"
        '_quorate_completion; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=20)
    assert (done.stdout.splitlines(), done.stderr) == (["orders", "*", f"$(touch {tmp_path}/ran)"], "")
    assert (tmp_path / "line").read_text(encoding="utf-8") == line
    assert not (tmp_path / "ran").exists()


def test_names_that_a_shell_could_run_or_take_apart_are_left_out(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers in the place of a controller may say anything."""

    async def answers(*_: object) -> list[str]:
        return [
            "orders",
            "or$(touch ran)",
            "or ders",
            "or\nders",
            "or;x",
            "-or",
            "other",
            *(f"or{n}" for n in range(500)),
        ]

    monkeypatch.setenv("QUORATE_CONTROLLERS", "127.0.0.1:1")
    monkeypatch.setattr("quorate.scripts.terminal.completing.names._answer", answers)
    found = words("quorate topics describe or")
    assert len(found) == NAMES_MAX
    assert {*found} <= {"orders", *(f"or{n}" for n in range(500))}
