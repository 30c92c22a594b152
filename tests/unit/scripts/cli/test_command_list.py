"""`quorate --help`: lists every command without importing any."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import _COMMANDS, make_app


@pytest.mark.parametrize("name", _COMMANDS)
def test_command_says_of_itself_what_the_list_says(name: str) -> None:
    app = typer.Typer()
    _COMMANDS[name].add(app)
    if app.registered_commands:
        said = inspect.getdoc(app.registered_commands[0].callback) or ""
    else:
        said = str(app.registered_groups[0].typer_instance.info.help)  # type: ignore[union-attr]
    assert " ".join(said.partition("\n\n")[0].split()) == _COMMANDS[name].summary


@pytest.mark.parametrize("arguments", [["--help"], ["nothing"], []])
def test_list_of_commands_is_there_where_none_is_called(arguments: list[str]) -> None:
    seen = CliRunner().invoke(make_app(arguments), ["--help"])
    assert seen.exit_code == 0
    assert [name for name in _COMMANDS if name not in seen.output] == []


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seen = CliRunner().invoke(make_app(["--version"]), ["--version"])
    assert (seen.exit_code, seen.output) == (0, f"quorate {project['version']}\n")


@pytest.mark.parametrize("arguments", [["image", "show", "--help"], ["--", "image", "show", "--help"]])
def test_command_that_is_called_is_the_one_that_runs(arguments: list[str]) -> None:
    assert "--at" in CliRunner().invoke(make_app(arguments), arguments).output
