"""A group of options is one parameter of a command, and the options are as if they stood there."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from quorate.scripts.cli.option_groups import command_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    colour: Annotated[str, typer.Option("--colour", metavar="NAME", help="What it is painted with.")] = "red"
    coats: Annotated[int, typer.Option("--coats", min=1, help="So often.")] = 2


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @command_of
    def paint(things: list[str], options: Paint, dry_run: Annotated[bool, typer.Option("--dry-run")] = False) -> None:
        typer.echo(f"{things} {options} {dry_run}")

    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_group_has_its_defaults_and_what_is_said() -> None:
    assert run("door") == (0, "['door'] Paint(colour='red', coats=2) False\n")
    assert run("--coats", "3", "door", "--dry-run", "gate") == (
        0,
        "['door', 'gate'] Paint(colour='red', coats=3) True\n",
    )


def test_options_of_a_group_are_checked_and_explained() -> None:
    code, refused = run("door", "--coats", "0")
    assert code == 2
    assert "--coats" in refused
    code, told = run("--help")
    assert code == 0
    assert told.lower().index("things") < told.index("--dry-run") < told.index("--colour")
    assert "What it is painted with." in told


def test_two_options_of_one_name_are_refused() -> None:
    def paint(paint: Paint, colour: str = "blue") -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="colour"):
        command_of(paint)
