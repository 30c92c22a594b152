"""The addresses that a command shows who asks: those that its user named, and no others that a server names."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.scripts.logins.named_login import is_login_named


def reason_not_to_ask(url: str, named: Iterable[str], secret: bytes | None) -> str | None:
    """The reason why a controller that another one told of is not asked; None: it may be. ``named``: base URLs."""
    if url in named or (secret is None and not is_login_named()):
        return None
    return f"{url} was not named, and the secret is sent to no address that only a controller tells of: name it too"
