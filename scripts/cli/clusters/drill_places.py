"""On which cluster drills are run: what `--on` and the commands beside it mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

import typer

from quorate.scripts.cluster.control import Act
from quorate.scripts.drills.commands import InvalidCommand, parse_command
from quorate.scripts.drills.drill import Drill
from quorate.scripts.drills.places import ForeignCluster, GivenDirectory, On
from quorate.scripts.terminal.places.controllers import find_tls, full_urls

_URL: Final = "http://"
_SCHEMES: Final = (_URL, "https://")


def place_of(on: str | None, commands: Mapping[Act, str | None], drills: Sequence[Drill], *, may_destroy: bool) -> On:
    """The place at which drills are run.

    Args:
        commands: what was given of `--kill-with` and its like.
        may_destroy: whether `--destroy` was.

    Raises:
        typer.BadParameter: a command is missing that one of the drills needs, cannot be understood, or is for nothing.
    """
    given = {act: _parsed(act, text) for act, text in commands.items() if text is not None}
    if on is None or not on.startswith(_SCHEMES):
        if given:
            raise typer.BadParameter(f"{_option(next(iter(given)))} is for a cluster named by --on {_URL}HOST:PORT,...")
        if may_destroy and on is None:
            raise typer.BadParameter("--destroy is for a cluster that is there already: --on DIR")
        return None if on is None else GivenDirectory(Path(on), may_destroy)
    if may_destroy:
        raise typer.BadParameter(f"--destroy is for a directory, not for a cluster named by --on {_URL}HOST:PORT,...")
    for drill in drills:
        for act in get_args(Act):
            if act in drill.acts and act not in given:
                raise typer.BadParameter(f"{drill.name} on a named cluster needs {_option(act)} COMMAND")
    urls = full_urls(on.split(","))
    return ForeignCluster(urls, given, find_tls(urls))


def _option(act: Act) -> str:
    return f"--{act}-with"


def _parsed(act: Act, text: str) -> tuple[str, ...]:
    try:
        return parse_command(text)
    except InvalidCommand as error:
        raise typer.BadParameter(f"{_option(act)}: {error}") from None
