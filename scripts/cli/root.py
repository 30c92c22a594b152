"""`quorate` itself, without any command: its options."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.metadata_log.release import release


def _say_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"quorate {release()}")
        raise typer.Exit


def root_options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Say which release this is.")
    ] = False,
) -> None:
    """Options of no command. That there are any keeps a command's name necessary where it is the only one."""
