"""`quorate manual`: the manual pages of all commands, as they are in this release."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
import typer.main

from quorate.scripts.cli.shell.manual_pages import ManualPage, overview, pages_of
from quorate.scripts.terminal.places.options import with_places
from quorate.scripts.terminal.programs.failures import Failed

app = typer.Typer(help="The manual pages of all commands, as files for man.", no_args_is_help=True)


@app.callback()
def manual() -> None:
    """The manual pages of all commands, as files for man."""


@app.command()
def export(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="As ~/.local/share/man: they are put into DIR/man1.")
    ],
) -> None:
    """Write the manual pages of all commands, one each, as they are in this release; those that are there are replaced.

    Example: quorate manual export ~/.local/share/man && man quorate-topics-list
    """
    pages = all_pages()
    section = directory / "man1"
    try:
        section.mkdir(parents=True, exist_ok=True)
        for page in pages:
            (section / page.file_name).write_text(page.text, encoding="utf-8")
    except OSError as error:
        raise Failed(f"{section}: {error.strerror or error}") from None
    typer.echo(f"{len(pages)} pages are in {section}: man -M {shlex.quote(str(directory))} quorate")


def all_pages() -> list[ManualPage]:
    """The page of every command, the overview first."""
    from quorate.scripts.cli.__main__ import command_summaries, make_app

    summaries = command_summaries()
    made = [overview(summaries)]
    for name in summaries:
        command = with_places(typer.main.get_command(make_app([name])))
        made += pages_of(command.commands[name], f"quorate-{name}", "quorate")
    return made
