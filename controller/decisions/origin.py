"""The origin of a request (who asks, and from where), kept with a change from the edge to its decision.

Where an authorizer decides, the principal is proved; where none does, it is what the client says it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, NamedTuple

from quorate.metadata_log.errors import ApiError, ErrorCode

#: Who does not say (Kafka's ``KafkaPrincipal.ANONYMOUS``).
ANONYMOUS: Final = "User:ANONYMOUS"
#: A header, and a line of the log, must stay readable.
PRINCIPAL_CHARS_MAX: Final = 256
#: Characters of a program's name for itself; each is printable ASCII.
CLIENT_ID_CHARS_MAX: Final = 256
#: A type, a colon and a name of printable ASCII characters, as a header can carry them.
PRINCIPAL_FORM: Final = r"^[A-Za-z]+:[!-~]([ -~]*[!-~])?$"
_FORM: Final = re.compile(PRINCIPAL_FORM)


class Grounds:
    """The reason why a request is allowed, as far as it has been looked at."""

    __slots__ = ("_allowed_by",)

    def __init__(self, allowed_by: str | Callable[[], str]) -> None:
        """The rule, in a few words, or what finds it out: few want to know, and later."""
        self._allowed_by = allowed_by

    def note(self, allowed_by: Callable[[], str]) -> None:
        """Something else has been asked for, and this finds out what allowed it."""
        self._allowed_by = allowed_by

    def newest(self) -> Callable[[], str]:
        """Finds out, in any thread, what allowed that which was asked for last."""
        found = self._allowed_by
        return found if callable(found) else lambda: found


class Origin(NamedTuple):
    """The client that makes a request: in whose name, from which address, by which request."""

    #: ``Type:name``.
    principal: str
    #: IP address of the client, as the controller that it connected to saw it.
    address: str
    #: The request's name in logs and errors.
    request_id: str
    #: The name of the program that asks, as it says itself; empty: it says none.
    client_id: str = ""
    #: How it was proved who that is.
    proof: str = ""
    #: The principal that asked in this one's name; empty: none did.
    proxy: str = ""
    #: None: nobody knows.
    grounds: Grounds | None = None
    #: From then on, in milliseconds since 1970, the proof is none. None: it has no such end.
    proof_ends_ms: int | None = None


#: The origin of the request that the running task answers; None where a controller acts by itself.
ORIGIN: Final[ContextVar[Origin | None]] = ContextVar("origin", default=None)


def check_client_id(text: str) -> str:
    """The same text.

    Raises:
        ApiError: INVALID_REQUEST, no program can have it as its name.
    """
    if len(text) > CLIENT_ID_CHARS_MAX or not text.isascii() or not text.isprintable():
        message = f"a client id has at most {CLIENT_ID_CHARS_MAX} printable ASCII characters, not {text[:40]!r}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    return text


def check_principal(text: str) -> str:
    """The same text.

    Raises:
        ApiError: INVALID_REQUEST, it names no principal.
    """
    if len(text) > PRINCIPAL_CHARS_MAX:
        message = f"a principal has at most {PRINCIPAL_CHARS_MAX} characters, not {len(text)}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    if not _FORM.fullmatch(text):
        message = f"a principal is Type:name in printable ASCII, such as User:alice, not {text[:40]!r}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    return text
