"""Checks of addresses before they are sent: all of it is text, and no more of it than a controller reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded

#: Bytes of an address, path and parameters: a controller reads a request's first line up to 8190, as most servers do.
TARGET_BYTES_MAX: Final = 8_000
_SHOWN_CHARS: Final = 40


def quoted(what: str, text: str) -> str:
    """Text as a part of an address. ``what``: the name of it, for the error.

    Raises:
        ApiError: INVALID_REQUEST, it has a half of a character, which no encoding has. LimitExceeded: it is too long.
    """
    try:
        part = quote(text, safe="")
    except UnicodeEncodeError as error:
        shown = ascii(text[max(0, error.start - _SHOWN_CHARS // 2) :][:_SHOWN_CHARS])
        message = (
            f"{what} has the surrogate {text[error.start]!a} at character {error.start}, near {shown}: no text has"
        )
        raise ApiError(ErrorCode.INVALID_REQUEST, message) from error
    if len(part) > TARGET_BYTES_MAX:
        raise LimitExceeded(
            f"{what} {text[:_SHOWN_CHARS]!r}... has {len(text)} characters, {len(part)} bytes in an address: it may "
            f"have {TARGET_BYTES_MAX}"
        )
    return part


def topic_part(name: str) -> str:
    """The name of a topic as a part of an address.

    Raises:
        ApiError: as ``quoted``; INVALID_TOPIC_EXCEPTION, the name is empty, or one that in an address is a way to
            another place. No topic has it; Kafka's clients refuse the first with the same words.
    """
    if name in ("", ".", ".."):
        message = f"The given topic name '{name}' cannot be represented in a request."
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return quoted("the topic name", name)


def check_target(path: str, parameters: Mapping[str, str | int]) -> None:
    """Check an address before anything is sent. ``path``: of parts that are ``quoted``.

    Raises:
        ApiError, LimitExceeded: as ``quoted``, of a parameter or of all together.
    """
    parts = [path, *(quoted(f"parameter {name}", text) for name, one in parameters.items() for text in (str(one),))]
    names = sum(len(quoted("the name of a parameter", name)) + 2 for name in parameters)  # with & and =
    size = sum(map(len, parts)) + names
    if size > TARGET_BYTES_MAX:
        raise LimitExceeded(f"the address of the request has {size} bytes: it may have {TARGET_BYTES_MAX}")
