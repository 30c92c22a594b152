"""Addresses, checked before anything is sent: where controllers are, and what a request is for.

All of it is text, and no more of it than a controller reads. No library of clients is needed for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded, QuorateError
from quorate.metadata_log.local_sockets import PATH_BYTES_MAX
from quorate.metadata_log.loopback import is_loopback

#: What a controller's Unix socket is named by, before its path.
UNIX: Final = "unix:"
#: Bytes of an address, path and parameters: a controller reads a request's first line up to 8190, as most servers do.
TARGET_BYTES_MAX: Final = 8_000
_SHOWN_CHARS: Final = 40
_PORT_MAX: Final = 65_535
_LONG_PORT: Final = re.compile(r":([0-9]{5,})\Z")


class InvalidUrl(QuorateError, ValueError):
    """A text that should name a controller does not."""


class SecretInPlaintext(QuorateError):
    """A secret or a token would have gone over a network where anybody between can read it. Nothing was sent."""


def check_way(url: str) -> None:
    """Check that what is secret may be sent to a controller.

    Raises:
        SecretInPlaintext: by plain HTTP, and to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SecretInPlaintext(
            f"{url}: a secret is sent to no other machine without TLS: ask https:// with the CAs, QUORATE_CA_FILE for "
            "commands, tls.ca_files for brokers; or, where the network is trusted with it, say insecure: "
            "QUORATE_INSECURE=1, access.insecure"
        )


def controller_url(text: str, scheme: str = "http") -> str:
    """The base URL that ``host:port``, with the scheme, or a URL names; ``unix:PATH`` names a socket and stays so.

    Raises:
        InvalidUrl: it names none.
    """
    url = text.strip().rstrip("/")
    if url.startswith(UNIX) and "\0" not in url and 0 < len(os.fsencode(url)) - len(UNIX) <= PATH_BYTES_MAX:
        return url
    if "://" not in url:
        url = f"{scheme}://{url}"
    if not _is_base_url(url):
        found = _LONG_PORT.search(url)
        digits = "" if found is None else found[1].lstrip("0")
        # Python refuses to take thousands of digits for a number.
        if len(digits) > len(str(_PORT_MAX)) or int(digits or 0) > _PORT_MAX:
            raise InvalidUrl(f"{text!r} names no controller: a port is {_PORT_MAX} at most")
        raise InvalidUrl(
            f"{text!r} names no controller: it must be host:port or http://host:port, with TLS https://host:port, "
            f"or unix:PATH with a path of {PATH_BYTES_MAX} bytes at most"
        )
    return url


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError:
        return False
    is_bare = not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and is_bare


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
