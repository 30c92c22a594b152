"""Keys that follow from the quorum's secret, one for each purpose, and MACs by them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable


def derived_key(secret: bytes, label: bytes) -> bytes:
    """A key for one purpose (HKDF-SHA256, RFC 5869, one block): none of them tells another, or the secret."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, label + b"\x01", "sha256")


def mac_of(key: bytes, parts: Iterable[bytes]) -> str:
    """HMAC-SHA256 of all parts, in hexadecimal digits. None passes for the end of one and the beginning of the next."""
    return hmac.digest(key, b"".join(b"%d:%b" % (len(part), part) for part in parts), "sha256").hex()
