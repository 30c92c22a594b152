"""The options that every command has which asks controllers, put where it has `--controllers`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.main

from quorate.scripts.logins.cluster_variables import CONTROLLERS_VARIABLE, DIRECTORY_VARIABLE
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.places.chosen import (
    CONTEXT_OPTION,
    DIRECTORY_OPTION,
    chosen_environment,
    kept_contexts,
)
from quorate.scripts.terminal.places.environment import replace_environment


def _options(
    cluster_directory: Annotated[
        str | None,
        typer.Option(
            DIRECTORY_OPTION,
            metavar="DIR",
            help="The local cluster in this directory. Default: ./var.",
            show_default=False,
        ),
    ] = None,
    cluster_context: Annotated[
        str | None,
        typer.Option(
            CONTEXT_OPTION,
            metavar="NAME",
            help="The cluster of this name: see quorate context.",
            autocompletion=completed_by(NameKind.CONTEXTS),
            show_default=False,
        ),
    ] = None,
) -> None:
    """Of no command of its own. A parameter of one that has them and is called alike would get their value."""


def with_places(command: Any) -> Any:
    """The command, and every one below it, with the options where they belong.

    What they say is looked at before anything else is read of the command (``chosen_environment``): then the variables
    of the environment are those of the cluster that is meant.
    """
    for below in getattr(command, "commands", {}).values():
        with_places(below)
    # By its variable the option is known by which commands are told whom to ask; processes have one for their settings.
    variables = [one.envvar for one in command.params]
    if CONTROLLERS_VARIABLE not in variables:
        if DIRECTORY_VARIABLE in variables:
            before_parsing(command, _choose_directory)
        return command
    after = variables.index(CONTROLLERS_VARIABLE) + 1
    known = {option for one in command.params for option in one.opts}
    command.params[after:after] = [one for one in _made() if not known & set(one.opts)]
    before_parsing(command, _choose_cluster)
    return command


def before_parsing(command: Any, look: Callable[[Any, list[str]], None]) -> None:
    """Have the arguments of a command looked at, with its context, before anything is read of them."""
    parse = command.parse_args

    def parse_args(context: Any, arguments: list[str]) -> Any:
        look(context, arguments)
        return parse(context, arguments)

    command.parse_args = parse_args


def _choose_cluster(context: Any, arguments: list[str]) -> None:
    if not context.resilient_parsing:
        replace_environment(chosen_environment(arguments, os.environ, kept_contexts))


def _choose_directory(context: Any, arguments: list[str]) -> None:
    """Of a command on the processes and files of a local cluster: by itself it is that of the context in use, where
    that is of a directory.
    """
    if not context.resilient_parsing:
        directory = chosen_environment(arguments, os.environ, kept_contexts).get(DIRECTORY_VARIABLE)
        if directory:
            replace_environment({**os.environ, DIRECTORY_VARIABLE: directory})


def _made() -> list[Any]:
    donor = typer.Typer(add_completion=False)
    donor.command()(_options)
    made: list[Any] = [one for one in typer.main.get_command(donor).params if one.name != "help"]
    for one in made:
        one.expose_value = False
    return made
