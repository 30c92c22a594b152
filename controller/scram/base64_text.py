"""Base64 as messages and credentials have it: with its padding, and nothing that does not belong to it."""

from __future__ import annotations

import binascii

#: Characters of three bytes.
_GROUP = 4


def base64_bytes(text: str) -> bytes:
    """The bytes of a text.

    Raises:
        ValueError: it is no base64, or not padded to whole groups.
    """
    if len(text) % _GROUP:
        raise ValueError("base64 that is not padded to groups of four characters")
    return binascii.a2b_base64(text, strict_mode=True)
