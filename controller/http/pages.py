"""Pages in browsers: those of other sites may not ask in their reader's name."""

from __future__ import annotations

from quorate.controller.identity.claims import NoAccess


def check_page(host: str, origin: str, fetch_site: str) -> None:
    """Look at what a browser says of the page that asks. Others say nothing: what is missing is empty.

    Raises:
        NoAccess: 403, it is a page of another site, which asks in its reader's name.
    """
    if fetch_site in ("", "none", "same-origin") and (not origin or origin.rpartition("://")[2] == host):
        return
    message = f"a page of {(origin or 'another site')[:100]!r} asks in its reader's name: pages of other sites may not"
    raise NoAccess(403, message)
