"""Recognizes answers from something that is no controller: a web server, another service, the quorum's own port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.controller.api import headers
from quorate.controller.api.content import BATCHES, JSON, MSGPACK, OCTETS

_OURS: Final = frozenset({JSON, MSGPACK, BATCHES, OCTETS})
#: What proxies answer where the controller behind them did not: it may have carried the request out.
_GATEWAY: Final = frozenset({502, 503, 504})
_TEXT: Final = "text/plain"
#: Of an offset.
_DIGITS_MAX: Final = 19
#: Of a text so much is repeated.
QUOTED_BYTES: Final = 200


def is_strange(answered: Mapping[str, str]) -> bool:
    """Whether no controller can have sent an answer with these headers.

    Controllers name themselves in every answer. The pages of broker processes do not, and have the same forms.
    """
    return headers.NODE not in answered and _media(answered) not in _OURS


def number_said(answered: Mapping[str, str], name: str) -> int | None:
    """The number in a header; None: it says none."""
    text = answered.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None


def description(status: int, answered: Mapping[str, str], begin: bytes) -> str:
    """An answer in a few words; ``begin``: at least its first ``QUOTED_BYTES``, where it has so many."""
    media = _media(answered)
    said = f"{media[:QUOTED_BYTES] or 'something without a content type'}, status {status}"
    if media != _TEXT:
        return said
    line = begin[:QUOTED_BYTES].decode("utf-8", "replace").partition("\n")[0]
    return f"{said}: {''.join(char if char.isprintable() else '?' for char in line.strip())}"


def _media(answered: Mapping[str, str]) -> str:
    return answered.get("Content-Type", "").partition(";")[0].strip()


def is_gateway(status: int) -> bool:
    """Whether somebody between may have passed the request on, so that nobody knows what became of it."""
    return status in _GATEWAY
