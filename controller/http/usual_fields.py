"""Header fields of the usual form: what clients of ours, and most others, send."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from quorate.controller.api import headers

#: Visible ASCII without anything that parsers may disagree about.
_HEADER: Final = re.compile(r"([A-Za-z0-9-]+):[ \t]*+([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?[ \t]*")
#: `Connection`, `Expect` or `Transfer-Encoding` would change the framing.
_KNOWN: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        headers.CLIENT_ID.lower(),
        headers.PRINCIPAL.lower(),
        headers.REQUEST_ID.lower(),
        headers.TIMEOUT_MS.lower(),
    }
)


def usual_fields(lines: Iterable[str]) -> dict[str, str] | None:
    """The fields by their names in lower case; None where one is not known, not of the form, or there twice."""
    fields: dict[str, str] = {}
    for text in lines:
        found = _HEADER.fullmatch(text)
        name = "" if found is None else found[1].lower()
        if found is None or name not in _KNOWN or name in fields:
            return None
        fields[name] = found[2] or ""
    return fields
