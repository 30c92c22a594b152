"""The words that complete a line without asking any cluster, and the programs that ask for them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.shell.completion import Shell
from quorate.scripts.cli.shell.completion_grammar import grammar_text
from quorate.scripts.logins.kept_contexts import KeptContext, KeptContexts, write_contexts
from quorate.scripts.terminal.completing.answer import words_for
from quorate.scripts.terminal.completing.grammar import GRAMMAR_FILE
from quorate.scripts.terminal.completing.names import NAMES_MAX

pytestmark = pytest.mark.usefixtures("bare_home")


def topics(*names: str) -> Any:
    """In the place of controllers: what they answer of topics."""
    return lambda *_: {"topics": [{"name": name} for name in names]}


def test_grammar_is_that_of_the_commands() -> None:
    again = "python -m quorate.scripts.generate_completion_grammar"
    assert GRAMMAR_FILE.read_text(encoding="utf-8") == grammar_text(), again


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
        ("quorate topics list --offline --off", []),
        ("quorate topics list --limit 5 --json --lim", []),
        ("quorate configs alter topic/x --set a=b --se", ["--set", "--secret-file"]),
        ("quorate configs describe group/x --name consumer.session", ["consumer.session.timeout.ms"]),
        ("quorate configs describe -- to", ["topic/"]),
        ("quorate drill run steady leader-k", ["leader-kill"]),
        ("quorate can-stop c", ["controller"]),
    ],
)
def test_words_that_are_known_here_complete_a_line(line: str, found: list[str]) -> None:
    write_contexts(
        KeptContexts(contexts=(KeptContext(name="prod", controllers="c:1"), KeptContext(name="twin", directory="/")))
    )
    assert words_for(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "", " ", "quorate", "quorate nothing here", "quorate topics describe 'or", "quorate topics describe or\\",
        "quorate topics list --dir none --context also or", "quorate topics describe --context none or",
        "quorate topics describe --controllers 127.0.0.1:1 or", "quorate topics describe --controllers ::: or",
        "quorate topics describe '", "quorate topics list --limit x or", "quorate " + "x " * 40_000,
        "quorate brokers describe --secret-file none 1", "quorate topics set-replication-factor orders 3 or",
        "quorate explain nothing or", "quorate topics describe -- --not", "quorate configs alter --unknown=re",
    ],
)  # fmt: skip
def test_line_that_nothing_completes_is_met_with_silence(
    line: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert words_for(line) == []
    assert capfd.readouterr() == ("", "")


def test_whoever_would_have_to_log_in_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password would be sent, and the login written down."""
    monkeypatch.setenv("QUORATE_USER", "ana")
    monkeypatch.setenv("QUORATE_PASSWORD_FILE", "none")
    monkeypatch.setenv("QUORATE_CONTROLLERS", "127.0.0.1:1")

    monkeypatch.setattr("quorate.scripts.terminal.completing.names.first_answer", topics("orders"))
    assert words_for("quorate topics describe or") == []
    for name in ("QUORATE_USER", "QUORATE_PASSWORD_FILE"):
        monkeypatch.delenv(name)
    assert words_for("quorate topics describe or") == ["orders"]


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


def test_names_that_a_shell_could_run_or_take_apart_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers in the place of a controller may say anything."""

    odd = ["orders", "or$(touch ran)", "or ders", "or\nders", "or;x", "-or", "other", *(f"or{n}" for n in range(500))]
    monkeypatch.setenv("QUORATE_CONTROLLERS", "127.0.0.1:1")
    monkeypatch.setattr("quorate.scripts.terminal.completing.names.first_answer", topics(*odd))
    found = words_for("quorate topics describe or")
    assert len(found) == NAMES_MAX
    assert {*found} <= {"orders", *(f"or{n}" for n in range(500))}
