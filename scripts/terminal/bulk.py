"""The result of a request about several things: one line each, and one exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import typer
from pydantic import BaseModel

from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.output import show


class ItemOutcome(NamedTuple):
    """The outcome for one of them."""

    #: How people call it.
    subject: str
    error_code: ErrorCode
    error_message: str | None
    #: The line where there is no error.
    done: str

    @property
    def is_done(self) -> bool:
        """Whether it was done."""
        return self.error_code is ErrorCode.NONE


def only(subjects: Sequence[str]) -> str | None:
    """The name of the only one of them, however often it was named; None where there are several."""
    return subjects[0] if len(set(subjects)) == 1 else None


def report(reply: BaseModel, outcomes: Sequence[ItemOutcome], *, as_json: bool) -> None:
    """Show the outcomes; ends the command as refused where one of them is.

    With JSON the reply is all of the output, and has every outcome in it.
    """
    show(reply, (outcome.done for outcome in outcomes if outcome.is_done), as_json=as_json)
    exit_by(outcomes)


def exit_by(outcomes: Sequence[ItemOutcome]) -> None:
    """Name what was refused; ends the command where there is any.

    Raises:
        typer.Exit: something was.
    """
    failed = [outcome for outcome in outcomes if not outcome.is_done]
    for outcome in failed:
        message = outcome.error_message or "refused"
        sentence = f"{outcome.subject}: {message} ({outcome.error_code.name})"
        sys.stderr.write(f"quorate: {shown_name(sentence)}\n")
    if failed:
        if len(outcomes) > 1:
            sys.stderr.write(f"quorate: {len(failed)} of {len(outcomes)} failed\n")
        raise typer.Exit(exit_codes.REFUSED)
