"""The shell of the web page: the files in `assets/`, the same for everybody. What it shows it asks for itself.

No file holds anything of the cluster, so whoever may not ask for its status may have them: a browser shows the page
before anybody has said who he is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from aiohttp import web
from pydantic import Field

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.models import HttpModel, Nothing
from quorate.controller.http.ports import Node
from quorate.metadata_log.errors import ErrorCode

ASSETS: Final = Path(__file__).parent / "assets"
HTML: Final = "text/html"
#: Of the files that HTML names, by their last part.
ASSET_MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_INDEX: Final = "index.html"

#: What a browser lets the page do: run, show and ask what comes from this controller, and nothing else. It is shown in
#: no frame of others, leaves by no form, and makes no markup out of texts (Trusted Types).
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Kept, and asked for again each time: another version has other files under the same names.
    "Cache-Control": "no-cache",
}


class AssetParameters(HttpModel):
    """One file of the page."""

    name: str = Field(min_length=1, max_length=64)
    """Its name, as other files of the page name it."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    data: bytes
    media: str
    #: Of its bytes: equal only where these are.
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """All files by name, read when the first one is asked for; the page itself is not among what others name."""
    media = {**ASSET_MEDIA, ".html": HTML}
    return {path.name: _read(path, media[path.suffix]) for path in sorted(ASSETS.iterdir()) if path.suffix in media}


def _read(path: Path, media: str) -> Asset:
    data = path.read_bytes()
    return Asset(data, media, hashlib.sha256(data).hexdigest()[:32])


async def get_page(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    return _answer(assets()[_INDEX], request)


async def get_asset(node: Node, parameters: AssetParameters, request: web.Request) -> web.StreamResponse:
    asset = assets().get(parameters.name)
    if asset is None or asset.media == HTML:
        message = f"the page has no file {parameters.name!r}"
        raise HttpRefusal(404, message, ErrorCode.RESOURCE_NOT_FOUND)
    return _answer(asset, request)


def _answer(asset: Asset, request: web.Request) -> web.Response:
    """The file, or 304 where the browser has it."""
    kept = request.if_none_match or ()
    is_kept = any(tag.value == asset.tag for tag in kept)
    answer = web.Response(status=304, headers=_HEADERS) if is_kept else web.Response(body=asset.data, headers=_HEADERS)
    answer.etag = asset.tag
    if not is_kept:
        answer.headers["Content-Type"] = f"{asset.media}; charset=utf-8"
    return answer
