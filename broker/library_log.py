"""The log of what runs inside other people's programs.

Our own processes configure ``structlog``, and so may anybody. Where nobody did it would print to standard output,
which is the program's: then events go to the standard library's loggers, which say nothing below a warning by default.
"""

from __future__ import annotations

import logging
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

#: Fields that a record of ``logging`` has itself, and takes from nobody.
_RECORD_FIELDS: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})
#: What ``render_to_log_kwargs`` hands on as arguments.
_ARGUMENTS: Final = frozenset({"exc_info", "stack_info"})
#: The field with a traceback (``metadata_log.tracebacks``).
_TRACEBACK: Final = "exception"


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

    def error(self, event: str, *, exception: str, **fields: object) -> None:
        """Something that somebody has to mend; with its traceback, as text."""
        self._say("error", event, exception, fields)

    def _say(self, severity: str, event: str, exception: str | None, fields: dict[str, object]) -> None:
        if structlog.is_configured():
            say = getattr(self._structured, severity)
            say(event, **fields, **({} if exception is None else {_TRACEBACK: exception}))
            return
        level = logging.getLevelNamesMapping()[severity.upper()]
        if self._plain.isEnabledFor(level):
            said = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
            self._plain.log(level, "%s", said if exception is None else f"{said}\n{exception}")


def log_to_the_program() -> None:
    """Hand all events to ``logging``, where the program has not said otherwise: standard output is its own.

    Each field becomes one of the record; one whose name records have themselves is said with a ``_`` at its end.
    """
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.stdlib.add_log_level,
                _tell_traceback,
                _rename_fields,
                structlog.stdlib.render_to_log_kwargs,
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
        )


def _tell_traceback(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A field of a record is shown by nobody who does not know of it."""
    if _TRACEBACK in event:
        event["event"] = f"{event['event']}\n{event.pop(_TRACEBACK)}"
    return event


def _rename_fields(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    for name in (event.keys() & _RECORD_FIELDS) - _ARGUMENTS:
        event[f"{name}_"] = event.pop(name)
    return event
