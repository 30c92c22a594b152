"""Classifies an exception in an event by its meaning for the client, for leadership and for the process.

One classification for the event queue and for HTTP alike (Kafka's ``EventHandlerExceptionInfo``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from quorate.metadata_log.errors import ApiError, ErrorCode, NotController
from quorate.snapshots.errors import ReplayError


@dataclass(frozen=True, slots=True)
class Reaction:
    """The way in which one exception is dealt with."""

    #: A bug or a broken part: counted, logged, shown to the operator.
    is_fault: bool
    #: The active controller gives up leadership: its speculative state may be wrong.
    resigns: bool
    #: What the client is told.
    public: ApiError


def classify(error: Exception) -> Reaction:
    """The reaction to an exception that an event's operation raised."""
    if isinstance(error, NotController):
        return Reaction(is_fault=False, resigns=False, public=error)
    if isinstance(error, ApiError):
        return Reaction(is_fault=False, resigns=False, public=error)
    if isinstance(error, ReplayError):
        # The record was not appended and the head is as before: only this request is lost, but a
        # decision that replay cannot take is a bug that somebody must see.
        message = f"the decision could not be replayed and was not written: {error}"
        return Reaction(is_fault=True, resigns=False, public=ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message))
    message = f"{type(error).__name__}: {error}"
    return Reaction(is_fault=True, resigns=True, public=ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message))


class FaultHandler(Protocol):
    """The receiver of faults. Production logs and, for a fatal one, ends the process; tests fail."""

    def fault(self, what: str, error: Exception) -> None:
        """Something is wrong, and the process goes on."""

    def fatal(self, what: str, error: Exception) -> None:
        """This process must not go on: it may have diverged. Does not return in production."""
