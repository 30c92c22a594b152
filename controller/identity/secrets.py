"""Secrets that may be exchanged while a process runs."""

from __future__ import annotations

from collections.abc import Callable

#: Gives the secrets that are believed at the moment, at least one. The first is the one that is shown.
Secrets = Callable[[], tuple[bytes, ...]]
#: What a client shows: always the same, or what it is given at the moment of each request. None: nothing.
ShownSecret = bytes | Callable[[], bytes] | None


def bearer(secret: bytes) -> str:
    """The `Authorization` header that shows a secret."""
    return "Bearer " + secret.decode("ascii")


def shown(secrets: Secrets | None) -> Callable[[], bytes] | None:
    """Gives the one that is to be shown at the moment; None: there are none."""
    return None if secrets is None else lambda: secrets()[0]
