"""Allowed targets of a path: this machine's file system, by a path or a ``file:`` URI.

A URI of another scheme is refused, for as a path it would be the name of a local directory: what is written there is
lost to who looks for it in the store that was named.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from quorate.pipeline.errors import BadSetting

#: RFC 3986; also with one slash, which is what ``pathlib`` makes of two. A directory of such a name is ``./name:/...``.
URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local_path(text: str) -> str:
    """The local path that a path or URI means.

    Raises:
        BadSetting: a URI of another scheme, or of another host.
    """
    scheme = URI.match(text)
    if scheme is None:
        return text.removeprefix("file:")
    if scheme[1].lower() != "file":
        raise BadSetting(
            f"{text}: a URI of scheme {scheme[1]}, and only paths of the local file system can be used here: "
            "mount the store, or copy what is to be read"
        )
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise BadSetting(f"{text}: names the host {parts.netloc}, and only this machine's files can be used here")
    return unquote(parts.path)


def local(text: str) -> Path:
    """As ``local_path``: what a command's option is parsed with."""
    return Path(local_path(text))
