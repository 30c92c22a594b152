"""The rows of the route table that are the web page."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import Nothing
from quorate.controller.http.page.events import EVENTS_MEDIA, EVENTS_PERMISSION, get_events
from quorate.controller.http.page.shell import ASSET_MEDIA, HTML, AssetParameters, get_asset, get_page
from quorate.controller.http.routing import Route, raw_route
from quorate.controller.permissions.permission import Open

PAGE_ROUTES: Final[tuple[Route, ...]] = (
    raw_route(
        "/",
        "The web page: what is wrong, why, and what to do, and the brokers by racks. It asks for all that it shows",
        get_page,
        tag="page",
        permission=Open(),
        parameters=Nothing,
        media=HTML,
        takes_head=True,
    ),
    raw_route(
        "/assets/{name}",
        "A file of the web page: script, style or picture",
        get_asset,
        tag="page",
        permission=Open(),
        parameters=AssetParameters,
        media=tuple(ASSET_MEDIA.values()),
        errors=(404,),
        takes_head=True,
    ),
    raw_route(
        "/v1/events",
        "Server-sent events that say when the status, or what it is made of, is another one: ask for it then",
        get_events,
        tag="page",
        permission=EVENTS_PERMISSION,
        parameters=Nothing,
        media=EVENTS_MEDIA,
    ),
)
