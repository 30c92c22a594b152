"""The log of what runs inside other people's programs.

Our own processes configure ``structlog``, and so may anybody. Where nobody did it would print to standard output,
which is the program's: then events go to the standard library's loggers, which say nothing below a warning by default.
"""

from __future__ import annotations

import logging

import structlog


class LibraryLog:
    """Events of one module, under its name."""

    def __init__(self, name: str) -> None:
        self._structured = structlog.get_logger(name)
        self._plain = logging.getLogger(name)

    def info(self, event: str, **fields: object) -> None:
        """Something that an operator may want to know."""
        self._say("info", event, None, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something that an operator should look at if it lasts."""
        self._say("warning", event, None, fields)

    def error(self, event: str, *, exc_info: BaseException, **fields: object) -> None:
        """Something that somebody has to mend; with its traceback."""
        self._say("error", event, exc_info, fields)

    def _say(self, severity: str, event: str, error: BaseException | None, fields: dict[str, object]) -> None:
        if structlog.is_configured():
            say = getattr(self._structured, severity)
            say(event, **fields, **({} if error is None else {"exc_info": error}))
            return
        level = logging.getLevelNamesMapping()[severity.upper()]
        if self._plain.isEnabledFor(level):
            said = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
            self._plain.log(level, "%s", said, exc_info=error)
