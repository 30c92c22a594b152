"""The log of a long-running process: one event a line on standard error, JSON or text for people.

What libraries, and the packages below the process, say to `logging` comes in the same form.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_log(level: Literal["debug", "info", "warning", "error"], form: Literal["json", "console"]) -> None:
    """Set up structlog for the whole process; call it once, before anything logs."""
    renderers: list[structlog.typing.Processor]
    if form == "json":
        # Without the values of variables: among them may be a request's passwords.
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        renderers = [structlog.processors.ExceptionRenderer(tracebacks), structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        renderers = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    usual: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*usual, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    plain_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=usual, processors=[plain_meta, *renderers])
    )
    logging.basicConfig(level=_LEVELS[level], handlers=[handler])
