"""Keys that follow from the quorum's secret, one for each purpose, and MACs by them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence

from quorate.controller.identity.secrets import Secrets


def derived_key(secret: bytes, label: bytes) -> bytes:
    """A key for one purpose (HKDF-SHA256, RFC 5869, one block): none of them tells another, or the secret."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, label + b"\x01", "sha256")


class DerivedKeys:
    """Keys for one purpose, one of each secret that is believed: the first makes MACs, and those of each are good."""

    def __init__(self, secrets: Secrets, label: bytes) -> None:
        self._secrets = secrets
        self._label = label
        self._of: tuple[bytes, ...] = ()
        self._keys: tuple[bytes, ...] = ()

    def now(self) -> tuple[bytes, ...]:
        """Those of the moment, in the order of the secrets. Another object for others."""
        secrets = self._secrets()
        if secrets != self._of:
            self._of, self._keys = secrets, tuple(derived_key(secret, self._label) for secret in secrets)
        return self._keys

    def mac(self, parts: Sequence[bytes]) -> str:
        """See ``mac_of``: by the first."""
        return mac_of(self.now()[0], parts)

    def is_mac(self, mac: str, parts: Sequence[bytes]) -> bool:
        """Whether one of them has made it."""
        return any(hmac.compare_digest(mac_of(key, parts), mac) for key in self.now())


def mac_of(key: bytes, parts: Iterable[bytes]) -> str:
    """HMAC-SHA256 of all parts, in hexadecimal digits. None passes for the end of one and the beginning of the next."""
    return hmac.digest(key, b"".join(b"%d:%b" % (len(part), part) for part in parts), "sha256").hex()
