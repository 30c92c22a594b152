"""The origin of a request (who asks, and from where), kept with a change from the edge to its decision.

Where an authorizer decides, the principal is proved; where none does, it is what the client says it is.
"""

from __future__ import annotations

import re
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
