"""How commands are run: their names, and what becomes of what the system refuses."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer

from quorate.controller.client.attempts import Unreachable
from quorate.metadata_log.errors import (
    ApiError,
    ErrorCode,
    NotController,
    OutcomeUnknown,
    Overloaded,
    QuorateError,
)
from quorate.scripts.cluster.new_directories import all_or_nothing
from quorate.scripts.cluster.plan import ClusterError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run
from quorate.scripts.terminal.programs.failures import USAGE, Failed

ROOT = Path(__file__).resolve().parents[4]
NO_TOPIC = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (QuorateError("no"), exit_codes.REFUSED, "thing: no\n"),
        (FULL, exit_codes.REFUSED, "thing: No space left on device\n"),
        (
            OSError(errno.EROFS, os.strerror(errno.EROFS), "/x"),
            exit_codes.REFUSED,
            "thing: /x: Read-only file system\n",
        ),
        (KeyboardInterrupt(), exit_codes.INTERRUPTED, ""),
        (NO_TOPIC, exit_codes.REFUSED, "thing: no such topic (UNKNOWN_TOPIC_OR_PARTITION)\n"),
        (Unreachable(["nobody there"]), exit_codes.UNREACHABLE, "thing: no controller could be reached: nobody there"),
        (NotController(2, "node 2 may be active"), exit_codes.UNREACHABLE, "thing: node 2 may be active"),
        (OutcomeUnknown("read before repeating it"), exit_codes.OUTCOME_UNKNOWN, "thing: read before repeating it"),
        (
            Failed("a: no", "b: no", "2 of 2 failed"),
            exit_codes.REFUSED,
            "thing: a: no\nthing: b: no\nthing: 2 of 2 failed",
        ),
    ],
    ids=["ours", "full disk", "read-only disk", "Ctrl-C", "refusal", "unreachable", "standby", "unknown", "several"],
)
def test_what_is_no_mistake_of_ours_is_a_sentence(
    failure: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise failure

    with pytest.raises(SystemExit) as ended:
        run(app, [], "scripts/thing")
    assert (ended.value.code, capsys.readouterr().err.strip("\n")) == (code, said.strip("\n"))


@pytest.mark.parametrize(
    ("failure", "document"),
    [
        (QuorateError("no"), ("REFUSED", "no", "no", exit_codes.REFUSED)),
        (FULL, ("ENOSPC", "No space left on device", "no", exit_codes.REFUSED)),
        (
            NO_TOPIC,
            (
                "UNKNOWN_TOPIC_OR_PARTITION",
                "no such topic (UNKNOWN_TOPIC_OR_PARTITION)",
                "no",
                exit_codes.REFUSED,
            ),
        ),
        (
            Overloaded("much waits"),
            ("THROTTLING_QUOTA_EXCEEDED", "much waits (THROTTLING_QUOTA_EXCEEDED)", "yes", exit_codes.REFUSED),
        ),
        (NotController(2, "ask 2"), ("UNREACHABLE", "ask 2", "yes", exit_codes.UNREACHABLE)),
        (OutcomeUnknown("read"), ("OUTCOME_UNKNOWN", "read", "after-reading", exit_codes.OUTCOME_UNKNOWN)),
        (Failed("a", "b", name=USAGE), ("USAGE", "a; b", "no", exit_codes.USAGE)),
        (typer.BadParameter("no such", param_hint="--at"), ("USAGE", "no such", "no", exit_codes.USAGE)),
    ],
)
def test_failure_is_one_document_where_json_is_asked_for(
    failure: Exception, document: tuple[str, str, str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        raise failure

    with pytest.raises(SystemExit) as ended:
        run(app, ["--json"])
    told = capsys.readouterr()
    name, message, retriable, code = document
    (line,) = told.err.splitlines()
    seen = json.loads(line)
    assert (seen["error"], seen["retriable"], seen["exit_code"], told.out) == (name, retriable, code, "")
    assert seen["message"].endswith(message)
    assert ended.value.code == code


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--json", "--nothing"], exit_codes.USAGE), (["--json"], 7), (["--", "--json"], None)]
)
def test_mistakes_and_exit_codes_are_kept_where_json_is_asked_for(
    arguments: list[str], code: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """What follows `--` is no option: a mistake is then told as it is to people."""
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def end(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        raise typer.Exit(7)

    with pytest.raises(SystemExit) as ended:
        run(app, arguments)
    assert ended.value.code == (exit_codes.USAGE if code is None else code)
    said = capsys.readouterr().err
    if code == exit_codes.USAGE:
        assert json.loads(said)["error"] == "USAGE"
    elif code is None:
        assert said == "quorate: Got unexpected extra argument(s) (--json) (quorate --help tells more)\n"
    else:
        assert said == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--limit", "x"],
            (
                "Invalid value for '--limit': Input should be a valid integer, unable to parse string as an integer, "
                "not 'x'"
            ),
        ),
        (
            ["--limit", "0"],
            "Invalid value for '--limit': Input should be greater than or equal to 1, not '0'",
        ),
        (["--colour", "blue"], "Invalid value for '--colour': 'blue' is not one of 'red', 'green'."),
        (["--nothing"], "No such option: --nothing"),
        (["--from", "a"], "No such option: --from"),
        ([], "Missing argument 'name'."),
    ],
)
def test_mistake_in_the_use_of_a_command_is_one_plain_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def show(
        name: str,
        limit: Annotated[int, typer.Option("--limit", min=1)] = 1,
        colour: Annotated[Literal["red", "green"], typer.Option("--colour")] = "red",
    ) -> None:
        raise AssertionError

    with pytest.raises(SystemExit) as ended:
        run(app, arguments, "scripts/thing")
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (exit_codes.USAGE, "")
    (line,) = told.err.splitlines()
    assert line.startswith(f"thing: {said}")
    assert line.endswith(" (scripts/thing --help tells more)")
    assert line.isascii()


def test_help_flows_whatever_the_lines_of_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def show() -> None:
        """Show a thing.

        First line,
        second line
        and third.

        Example:

          thing show
          --all
        """

    with pytest.raises(SystemExit):
        run(app, ["--help"], "thing")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert " First line, second line and third." in lines
    assert "   thing show --all" in lines


def test_group_without_a_command_shows_its_help_and_says_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.command("one")(lambda: None)
    app.command("two")(lambda: None)
    with pytest.raises(SystemExit) as ended:
        run(app, [], "thing")
    told = capsys.readouterr()
    assert ended.value.code == exit_codes.USAGE
    assert "two" in told.out + told.err
    assert "thing:" not in told.err


def launchers() -> dict[str, str]:
    """Those that start a program of ours with typer, by name, and its source."""
    found = {}
    for path in (ROOT / "scripts").iterdir():
        if path.is_file() and os.access(path, os.X_OK):
            module = re.search(r"-m (quorate\.scripts[\w.]+)", path.read_text(encoding="utf-8"))
            if module and module[1] != "quorate.scripts.cli":
                stem = ROOT / "src" / module[1].replace(".", "/")
                source = stem / "__main__.py" if stem.is_dir() else stem.with_suffix(".py")
                found[path.name] = source.read_text(encoding="utf-8")
    return found


def test_every_launcher_is_called_in_its_usage_as_it_is_started() -> None:
    found = launchers()
    assert {"netsim", "fuzz-peer", "simulate", "bench", "spark-cluster"} <= found.keys()
    assert [name for name, source in found.items() if not re.search(rf'"scripts/{name}[ "]', source)] == []


def fill(directory: Path) -> None:
    with all_or_nothing(directory) as making:
        (making / "half").write_text("x", encoding="utf-8")
        raise FULL


def test_directory_for_which_there_is_no_room_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"new cannot be made: No space left on device; nothing is left of it"):
        fill(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--from", ""], exit_codes.USAGE),
        (["--from", "a", "--from="], exit_codes.USAGE),
        (["--from", "."], exit_codes.DONE),
        (["--from", "a", "--", ""], exit_codes.DONE),
    ],
)
def test_empty_name_of_files_is_no_dot(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()

    @app.command()
    def look(
        names: Annotated[list[str] | None, typer.Argument()] = None,
        places: Annotated[list[Path] | None, typer.Option("--from")] = None,
    ) -> None:
        """Of files."""

    with pytest.raises(SystemExit) as ended:
        run(app, arguments, "thing")
    said = capsys.readouterr().err
    assert (ended.value.code, "--from: an empty name names no files" in said) == (code, code != exit_codes.DONE)
