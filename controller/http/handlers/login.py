"""`/v1/login`: SCRAM in the headers of two requests (RFC 7804), and a token for all that follow."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from quorate.controller.api.content import JSON
from quorate.controller.api.errors import HttpRefusal, error_reply
from quorate.controller.api.login_models import LoginReply
from quorate.controller.api.models import Nothing
from quorate.controller.api.tls_entrance import is_secured
from quorate.controller.http.dispatch import REQUEST_ID
from quorate.controller.http.ports import Node
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.logins import Logins
from quorate.controller.identity.other_ends import address_of
from quorate.controller.scram.errors import ScramError
from quorate.controller.scram.http_fields import HttpStep, http_step
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.loopback import is_loopback

#: Tokens are for who asked, and for nobody between.
_NOT_KEPT: Final = {"Cache-Control": "no-store"}


async def get_login(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    logins = node.access.logins
    if logins is None:
        message = "nobody logs in here: access.login_mechanisms of this controller names none"
        raise HttpRefusal(404, message, ErrorCode.RESOURCE_NOT_FOUND)
    address = address_of(request)
    _check_way(request, address)
    header = request.headers.get("Authorization", "")
    if not header:
        return _told_to_go_on("say who logs in: Authorization with one of the mechanisms of WWW-Authenticate", {})
    logins.failures.check(address)
    try:
        step = http_step(header)
        return _finished(logins, step) if step.sid else _begun(logins, step)
    except ScramError as error:
        logins.failures.note(address)
        # Whoever asks learns neither whether there is such a user nor what of it was wrong.
        message = "the login failed: the user, its password, the mechanism or the form is wrong"
        raise NoAccess(401, message, f"the login failed: {error}") from None


def _check_way(request: web.Request, address: str) -> None:
    """Refuse a login that anybody between could read: he would have its token."""
    if not is_secured(request) and not is_loopback(address):
        raise NoAccess(403, "logins from other machines are by TLS only: ask with https://")


def _begun(logins: Logins, step: HttpStep) -> web.Response:
    answer = logins.begin(step)
    return _told_to_go_on("the login has begun: the last message is due", {"WWW-Authenticate": answer.text})


def _told_to_go_on(message: str, sent: dict[str, str]) -> web.Response:
    """The answer of an exchange that goes on: the status is a refusal's, and nothing is wrong."""
    error = HttpRefusal(401, message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    body = error_reply(error, REQUEST_ID.get()).model_dump_json().encode()
    return web.Response(status=401, body=body, content_type=JSON, headers={**_NOT_KEPT, **sent})


def _finished(logins: Logins, step: HttpStep) -> web.Response:
    found = logins.finish(step)
    reply = LoginReply(
        token=found.token,
        principal=found.identity.principal,
        lifetime_ms=found.lifetime_ms,
        expires_at_ms=found.expires_ms,
    )
    sent = {**_NOT_KEPT, "Authentication-Info": found.step.parameters}
    return web.Response(body=reply.model_dump_json().encode(), content_type=JSON, headers=sent)
