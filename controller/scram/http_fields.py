"""SCRAM in the headers of HTTP (RFC 7804): the messages in base64, beside the name of the exchange that they are of."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from quorate.controller.scram.base64_text import base64_bytes
from quorate.controller.scram.errors import ScramFailure
from quorate.controller.scram.keys import HASHES

#: Characters of one header: a server reads no longer ones.
FIELD_CHARS_MAX: Final = 8_190
#: One parameter behind white space, its value in quotation marks or without, and the comma behind it.
_PARAMETER: Final = re.compile(r'[ \t]*+([A-Za-z]++)=(?:"([^"\\]*+)"|([A-Za-z0-9!#$%&\'*+.^_`|~/=-]++))[ \t]*+(?:,|\Z)')
_SID: Final = re.compile(r"[A-Za-z0-9._~-]++")


class HttpStep(NamedTuple):
    """One message of an exchange."""

    #: Of ``keys.HASHES``; empty where the header does not say it.
    mechanism: str
    #: The exchange's name, made by the server; empty: it has none yet.
    sid: str
    message: bytes

    @property
    def parameters(self) -> str:
        """The header behind the mechanism."""
        data = f'data="{b64encode(self.message).decode()}"'
        return f"sid={self.sid}, {data}" if self.sid else data

    @property
    def text(self) -> str:
        """The header."""
        return f"{self.mechanism} {self.parameters}"


def challenge(mechanism: str, realm: str) -> str:
    """The part of `WWW-Authenticate` that says that a mechanism may begin."""
    return f'{mechanism} realm="{realm}"'


def http_step(text: str) -> HttpStep:
    """The message in `Authorization`, or in `WWW-Authenticate` where it has one.

    Raises:
        ScramFailure: there is none.
    """
    mechanism, _, rest = text.partition(" ")
    if mechanism not in HASHES:
        raise ScramFailure(f"a header that is not of one of the mechanisms {', '.join(HASHES)}")
    return _step(mechanism, rest)


def authentication_info(text: str) -> HttpStep:
    """The message in `Authentication-Info`.

    Raises:
        ScramFailure: there is none.
    """
    return _step("", text)


def is_challenge(text: str) -> bool:
    """Whether a `WWW-Authenticate` says no more than how to begin."""
    return "data=" not in text


def _step(mechanism: str, text: str) -> HttpStep:
    parameters = _parameters(text)
    sid = parameters.get("sid", "")
    if sid and not _SID.fullmatch(sid):
        raise ScramFailure("a sid that is none")
    try:
        message = base64_bytes(parameters.get("data", ""))
    except ValueError:
        raise ScramFailure("data that is not base64") from None
    if not message:
        raise ScramFailure("a header without data")
    return HttpStep(mechanism, sid, message)


def _parameters(text: str) -> Mapping[str, str]:
    """By name in lower case. Of what comes twice nobody knows which counts, so it is refused."""
    if len(text) > FIELD_CHARS_MAX:
        raise ScramFailure(f"a header of {len(text)} characters; at most {FIELD_CHARS_MAX} can be")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        form = _PARAMETER.match(text, at)
        if form is None or form[1].lower() in found:
            raise ScramFailure("parameters that are not NAME=VALUE with commas between, each once")
        found[form[1].lower()] = form[2] if form[3] is None else form[3]
        at = form.end()
    return found
