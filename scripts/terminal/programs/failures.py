"""The end of a command that did not do what it was asked to: sentences for people, one document for programs."""

from __future__ import annotations

import errno
import json
from typing import Any, Final, NamedTuple

import typer

from quorate.metadata_log.errors import ApiError, NotController, OutcomeUnknown, QuorateError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.harmless import shown_name

#: Names of failures that are no error of a controller's.
REFUSED: Final = "REFUSED"
USAGE: Final = "USAGE"
UNREACHABLE: Final = "UNREACHABLE"
OUTCOME_UNKNOWN: Final = "OUTCOME_UNKNOWN"

_CODES: Final = {
    REFUSED: exit_codes.REFUSED,
    USAGE: exit_codes.USAGE,
    UNREACHABLE: exit_codes.UNREACHABLE,
    OUTCOME_UNKNOWN: exit_codes.OUTCOME_UNKNOWN,
}
#: As `retriable` of the HTTP API: whether the same command may be given again.
_RETRIABLE: Final = {UNREACHABLE: "yes", OUTCOME_UNKNOWN: "after-reading"}
#: What a mistake in the use of a command is to Typer, which has its own Click, and names this class in no module of its
#: own: the form of such a mistake is the class's business.
_UsageMistake: Final[type[Exception]] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class Failed(QuorateError):
    """A command's own failure."""

    def __init__(self, *sentences: str, name: str = REFUSED, code: int | None = None) -> None:
        """``name``: for programs. ``code``: the exit code; None: that of the name."""
        super().__init__("; ".join(sentences))
        self.sentences = sentences
        self.name = name
        self.code = _CODES[name] if code is None else code


class Failure(NamedTuple):
    """A failure as it is told."""

    #: Kafka's name of a controller's error, the system's of an error of its, or one of those above.
    name: str
    #: For people, a line each.
    sentences: tuple[str, ...]
    exit_code: int
    retriable: str = "no"
    #: Where a person reads on; "" where there is nothing more to read.
    hint: str = ""

    def as_json(self) -> str:
        """The document, in one line."""
        document: dict[str, Any] = {
            "error": self.name,
            "message": "; ".join(self.sentences),
            "retriable": self.retriable,
            "exit_code": self.exit_code,
        }
        return json.dumps(document)


def failure_of(error: Exception) -> Failure | None:
    """The failure that an error is; None: it is a bug.

    Those are the ones that we raise on purpose, refusals of controllers with the name of their code, and what the
    system refuses: a full or read-only disk, a file that is not there or that we may not open.
    """
    if isinstance(error, Failed):
        return Failure(error.name, error.sentences, error.code, _RETRIABLE.get(error.name, "no"))
    # A controller's words make no line of their own.
    if isinstance(error, NotController):
        return Failure(UNREACHABLE, (shown_name(str(error)),), exit_codes.UNREACHABLE, _RETRIABLE[UNREACHABLE])
    if isinstance(error, OutcomeUnknown):
        sentences = (shown_name(str(error)),)
        return Failure(OUTCOME_UNKNOWN, sentences, exit_codes.OUTCOME_UNKNOWN, _RETRIABLE[OUTCOME_UNKNOWN])
    if isinstance(error, ApiError):
        return _refusal(error)
    if isinstance(error, QuorateError):
        return Failure(REFUSED, (str(error),), exit_codes.REFUSED, hint=_login_hint(str(error)))
    if isinstance(error, OSError):
        return Failure(errno.errorcode.get(error.errno or 0, REFUSED), (_system_sentence(error),), exit_codes.REFUSED)
    if isinstance(error, _UsageMistake):
        return _mistake(error)
    return None


def _mistake(error: Any) -> Failure:
    """A mistake in the use of a command, in one line. Where the command's help was shown instead, nothing is said."""
    context = getattr(error, "ctx", None)
    rule = _broken_rule(error)
    if rule is not None:
        error.message = rule
    said = " ".join(error.format_message().split())
    hint = "" if context is None or not said else f"{context.command_path} --help tells more"
    return Failure(USAGE, (said,) if said else (), exit_codes.USAGE, hint=hint)


def _broken_rule(error: Any) -> str | None:
    """The rule that the type of an option or argument has, with the value that breaks it; None: it is another mistake.

    Typer tells the rule alone.
    """
    from pydantic import ValidationError  # of use to what went wrong only, as what follows

    from quorate.controller.protocol.problems import message_of

    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return None
    first = cause.errors(include_url=False)[0]
    # The words of Typer's own rules name the value already.
    return message_of(first, shows_value=first["type"] != "value_error")


def _refusal(error: ApiError) -> Failure:
    from quorate.controller.api.errors import retriable  # of use to commands that ask controllers only

    sentence = f"{shown_name(str(error))} ({error.code.name})"
    return Failure(error.code.name, (sentence,), exit_codes.REFUSED, retriable(error), hint=_login_hint(sentence))


def _login_hint(sentence: str) -> str:
    from quorate.scripts.logins.nobody import HOW_TO_LOG_IN, is_refused_to_nobody

    return HOW_TO_LOG_IN if is_refused_to_nobody(sentence) else ""


def _system_sentence(error: OSError) -> str:
    """The system's message, with its file where it names one, without the form of Python's errors."""
    said = error.strerror or str(error) or type(error).__name__
    return said if error.filename is None else f"{error.filename}: {said}"
