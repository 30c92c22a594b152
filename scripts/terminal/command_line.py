"""Runs every command: under the name that it is called by, and with a sentence for what goes wrong around it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, Final, NoReturn

import typer
import typer.main

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.places.environment import own_environment
from quorate.scripts.terminal.places.options import before_parsing, with_places
from quorate.scripts.terminal.programs.failures import failure_of
from quorate.scripts.terminal.progress.line import answering_programs

#: Of commands whose answer programs read: so do they its failure.
_JSON_OPTION: Final = "--json"
#: Of commands that read files and ask nobody.
_FILES_OPTION: Final = "--from"


def run(app: typer.Typer, arguments: Sequence[str], name: str = "quorate", *, obj: object = None) -> NoReturn:
    """Run one command; errors that are no mistake of ours become a sentence and an exit code (``failure_of``).

    Where JSON is asked for they become a JSON document, the last line of standard error.

    Args:
        name: as it is called, in its usage and before its sentences.
        obj: for the command, in its context.

    Raises:
        SystemExit: always.
    """
    is_json = _JSON_OPTION in takewhile(lambda argument: argument != "--", arguments)
    try:
        # By itself Typer tells of mistakes in the use of a command: in a frame, which no other tool can read.
        with answering_programs(is_json), own_environment():
            command = _flowing(_refusing_empty(with_places(typer.main.get_command(app))))
            code = command(list(arguments), prog_name=name, obj=obj, standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        hint = f" ({failure.hint})" if failure.hint else ""
        lines = [f"{name.rpartition('/')[2]}: {sentence}{hint}" for sentence in failure.sentences]
        sys.stderr.writelines(f"{line}\n" for line in ([failure.as_json()] if is_json else lines))
        sys.exit(failure.exit_code)
    sys.exit(code if isinstance(code, int) else exit_codes.DONE)


def _refusing_empty(command: Any) -> Any:
    """The command, and every one below it, with an empty name refused where files are read.

    As a path it is the directory that one is in, and by then nobody can tell it from a dot.
    """
    for below in getattr(command, "commands", {}).values():
        _refusing_empty(below)
    if any(_FILES_OPTION in one.opts for one in command.params):
        before_parsing(command, _refuse_empty)
    return command


def _refuse_empty(context: Any, arguments: list[str]) -> None:
    words = list(takewhile(lambda argument: argument != "--", arguments))
    if f"{_FILES_OPTION}=" in words or (_FILES_OPTION, "") in pairwise(words):
        raise typer.BadParameter("an empty name names no files", ctx=context, param_hint=_FILES_OPTION)


def _flowing(command: Any) -> Any:
    """The command, and every one below it, with each paragraph of its help in one line, for a terminal of any width.

    By itself Typer keeps the line ends of the source behind the first paragraph, wherever the terminal ends.
    """
    for below in getattr(command, "commands", {}).values():
        _flowing(below)
    if command.help:
        command.help = "\n\n".join(map(_in_one_line, inspect.cleandoc(command.help).split("\n\n")))
    return command


def _in_one_line(paragraph: str) -> str:
    first, *others = paragraph.splitlines()
    return " ".join([first, *(line.strip() for line in others)])
