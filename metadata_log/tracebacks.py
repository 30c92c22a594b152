"""Tracebacks for the log: text, with the lines of code and without the values of variables.

An error that is handed to a log as it is may be shown there with the variables of each frame, as the log of the
program around us likes it. Among ours are images, which have the keys of SCRAM users, and secrets.
"""

from __future__ import annotations

from traceback import TracebackException
from typing import Final

#: Of each error of a chain: the innermost frames.
_FRAMES_MAX: Final = 40
_CHARS_MAX: Final = 20_000


def traceback_text(error: BaseException) -> str:
    """The traceback of an error and of those that it came from; of a long one the end, where the error is."""
    told = TracebackException.from_exception(error, limit=-_FRAMES_MAX, capture_locals=False)
    text = "".join(told.format()).rstrip("\n")
    return text if len(text) <= _CHARS_MAX else f"...{text[-_CHARS_MAX:]}"
