"""The result of a request about several things: one line each, and one exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel

from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.harmless import shown_name, shown_subject
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.programs.failures import REFUSED, Failed


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
        Failed: something was.
    """
    failed = [outcome for outcome in outcomes if not outcome.is_done]
    if not failed:
        return
    sentences = [
        shown_name(f"{shown_subject(one.subject)}: {one.error_message or 'refused'} ({one.error_code.name})")
        for one in failed
    ]
    if len(outcomes) > 1:
        sentences.append(f"{len(failed)} of {len(outcomes)} failed")
    kinds = {one.error_code for one in failed}
    raise Failed(*sentences, name=kinds.pop().name if len(kinds) == 1 else REFUSED, code=exit_codes.REFUSED)
