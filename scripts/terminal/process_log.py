"""The log of a long-running process: one event a line on standard error, JSON or text for people.

What libraries, and the packages below the process, say to `logging` comes in the same form.
"""

from __future__ import annotations

import io
import logging
import sys
from typing import Final, Literal, TextIO

import structlog

from quorate.scripts.terminal.harmless import shown, shown_name, terminal_of

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: What the renderer makes a traceback of, in lines of its own.
_EXCEPTION_KEYS: Final = frozenset({"exc_info", "stack", "stack_info"})
#: A traceback that is text already (``metadata_log.tracebacks``).
_TRACEBACK_KEY: Final = "exception"


def configure_log(level: Literal["debug", "info", "warning", "error"], form: Literal["json", "console"]) -> None:
    """Set up structlog for the whole process; call it once, before anything logs."""
    renderers: list[structlog.typing.Processor]
    if form == "json":
        # Without the values of variables: among them may be a request's passwords.
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        renderers = [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer()]
    else:
        colours = sys.stderr.isatty()
        renderers = [
            _harmless,
            structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=_harmless_traceback),
        ]
    usual: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Every value of a line is harmless by now, and colours are meant.
    stream = terminal_of(sys.stderr)
    structlog.configure(
        processors=[*usual, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    plain_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=usual, processors=[plain_meta, *renderers])
    )
    logging.basicConfig(level=_LEVELS[level], handlers=[handler])


def _harmless(
    logger: structlog.typing.WrappedLogger, name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Texts from outside make no line of their own, and move no cursor."""
    return {key: _harmless_field(key, value) for key, value in event.items()}


def _harmless_field(key: str, value: object) -> object:
    if key in _EXCEPTION_KEYS:
        return value
    return shown(value) if key == _TRACEBACK_KEY and isinstance(value, str) else _harmless_value(value)


def _harmless_value(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return shown_name(value if isinstance(value, str) else repr(value))


def _harmless_traceback(stream: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(shown(text.getvalue()))
