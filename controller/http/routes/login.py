"""The row of the route table by which clients log in."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.content import JSON
from quorate.controller.api.login_models import LoginReply
from quorate.controller.api.models import Nothing
from quorate.controller.http.answers import LOGIN_PATH
from quorate.controller.http.handlers.login import get_login
from quorate.controller.http.routing import Route, raw_route
from quorate.controller.permissions.permission import Open

LOGIN_ROUTES: Final[tuple[Route, ...]] = (
    raw_route(
        LOGIN_PATH,
        "Log in by SCRAM (RFC 7804), for a token",
        get_login,
        tag="users and access",
        permission=Open(),
        parameters=Nothing,
        media=JSON,
        reply=LoginReply,
        headers=(("Authentication-Info", "The server's last message, in base64: its proof."),),
        errors=(404, 429),
    ),
)
