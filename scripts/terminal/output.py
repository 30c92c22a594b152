"""The display of values, the same in every command, and the end of a command whose output nobody reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.progress.amounts import duration

if TYPE_CHECKING:  # commands that show no reply start without it
    from pydantic import BaseModel


def format_time(timestamp_ms: int) -> str:
    """A time in milliseconds since 1970, as ISO 8601 in UTC; the bare number where no calendar reaches."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"


def or_dash(number: int | None) -> str:
    """A number, a dash where there is none."""
    return "-" if number is None else str(number)


def ago(milliseconds: int | None) -> str:
    """The time since something was, a dash where it was not."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds} ms ago"
    return f"{milliseconds / 1000:.1f} s ago" if milliseconds < 100_000 else f"{duration(milliseconds / 1000)} ago"


def counted(number: int, one: str) -> str:
    """``1 topic``, ``2,805 topics``."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End the command well, and in silence, when the reader of its output has had enough (`| head`)."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Nothing to say, and nowhere to say it: what is still buffered must not fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(exit_codes.DONE) from None


def show(reply: BaseModel, lines: Iterable[str], *, as_json: bool) -> None:
    """Write a reply as one JSON document, or else these lines, to a reader who may leave."""
    from quorate.scripts.terminal.programs.documents import as_document

    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(reply) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in lines)
