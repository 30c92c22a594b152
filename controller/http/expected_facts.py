"""`X-Quorate-Expected-Facts`: the condition that a change is sent with."""

from __future__ import annotations

from aiohttp import web
from pydantic import BaseModel

from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.models import BrokerParameters, Nothing
from quorate.controller.decisions.precondition import Precondition
from quorate.controller.permissions.facts import need_facts
from quorate.controller.permissions.rights import Rights
from quorate.controller.plans.expectation import expecting
from quorate.controller.plans.facts import change_of
from quorate.controller.protocol import UnregisterBrokerRequest


def precondition_of(
    request: web.Request, rights: Rights, parameters: BaseModel, body: BaseModel
) -> Precondition | None:
    """The condition that a request names; None: it names none.

    Raises:
        HttpRefusal: 400, the request is no change that goes by facts. ApiError: the header is no digest, or the caller
            may not read the facts: whoever guesses them would be told whether they are so.
    """
    digest = request.headers.get(headers.EXPECTED_FACTS)
    if digest is None:
        return None
    asked: BaseModel = body
    if isinstance(body, Nothing) and isinstance(parameters, BrokerParameters):
        asked = UnregisterBrokerRequest(broker_id=parameters.broker_id)
    change = change_of(asked)
    if change is None or request.method == "GET":
        raise HttpRefusal(400, f"header {headers.EXPECTED_FACTS} is for changes that can be planned")
    need_facts(rights, change)
    return expecting(change, digest)
