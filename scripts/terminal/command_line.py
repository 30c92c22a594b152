"""Runs every command: under the name that it is called by, and with a sentence for what goes wrong around it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from quorate.metadata_log.errors import ApiError, QuorateError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.harmless import shown_name


def run(app: typer.Typer, arguments: Sequence[str], name: str = "quorate", *, obj: object = None) -> NoReturn:
    """Run one command; errors that are no mistake of ours become one sentence and an exit code.

    Those are the ones that we raise on purpose, refusals of controllers with the name of their code, and what the
    system refuses: a full or read-only disk, a file that is not there or that we may not open.

    Args:
        name: as it is called, in its usage and before its sentences.
        obj: for the command, in its context.

    Raises:
        SystemExit: always.
    """
    try:
        app(list(arguments), prog_name=name, obj=obj)
        sys.exit(exit_codes.DONE)
    except ApiError as error:
        # A controller's words: they make no line of their own.
        sentence = f"{shown_name(str(error))} ({error.code.name})"
    except QuorateError as error:
        sentence = str(error)
    except OSError as error:
        sentence = system_sentence(error)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
    sys.stderr.write(f"{name.rpartition('/')[2]}: {sentence}\n")
    sys.exit(exit_codes.REFUSED)


def system_sentence(error: OSError) -> str:
    """The system's message, with its file where it names one, without the form of Python's errors."""
    said = error.strerror or str(error) or type(error).__name__
    return said if error.filename is None else f"{error.filename}: {said}"
