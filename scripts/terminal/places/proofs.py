"""The one thing that says who asks, and the way on which it is shown.

It is a secret or token, a user who logs in, a certificate, which are named for the command; else the login that is kept
for these controllers; else, of the local cluster, its administrator through Unix sockets.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quorate.scripts.logins.kept_logins import KeptLogin, find_kept
from quorate.scripts.logins.named_login import is_login_named
from quorate.scripts.terminal.places.controllers import find_tls, local_sockets, shows_certificate

if TYPE_CHECKING:
    from quorate.controller.api.tls_contexts import TlsContexts


class Proof(NamedTuple):
    """The proof of who asks, where nobody logs in, and the way on which it goes."""

    #: A secret or token, in a header.
    shown: bytes | None
    tls: TlsContexts | None
    #: Paths of the Unix sockets through which they are asked, by URL.
    sockets: Mapping[str, str]


def proof_for(urls: Sequence[str], secret: bytes | None, local: Path, *, logs_in: bool) -> Proof:
    """The proof for these controllers.

    Args:
        secret: that is named, or a token. local: directory of the local cluster. logs_in: a user does, who is named.

    Raises:
        As ``find_tls`` and ``find_kept``.
    """
    kept = kept_login(urls, secret)
    shown = secret if kept is None else kept.token.encode()
    is_administrator = shown is None and not logs_in
    return Proof(
        shown,
        find_tls(urls, local, is_administrator=is_administrator),
        local_sockets(local) if is_administrator and not shows_certificate() else {},
    )


def kept_login(urls: Sequence[str], secret: bytes | None) -> KeptLogin | None:
    """The login that is kept for these controllers; None: there is none, or something else says who asks."""
    if secret is not None or is_login_named() or shows_certificate():
        return None
    return find_kept(urls, time.time() * 1000)
