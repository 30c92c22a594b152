"""The rows of the route table that are about delegation tokens."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import tokens as token_handlers
from quorate.controller.http.handlers.tokens import TokenParameters
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.permission import ByItem
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

#: The password of the token is in the request, and whoever may is named in the token.
_OF_OWNERS: Final = "to be the token's owner or renewer; never by a delegation token"

TOKEN_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/delegation-tokens",
        "Delegation tokens, a page at a time, without what they authenticate by (Kafka's DescribeDelegationToken)",
        token_handlers.describe_tokens,
        tag="delegation tokens",
        permission=ByItem(
            "one's own; others with DESCRIBE_TOKENS on their owner (User) or DESCRIBE on DelegationToken"
        ),
        parameters=TokenParameters,
        body=Nothing,
        reply=DescribeDelegationTokenResponse,
        serving=Serving.CONSISTENT,
    ),
    route(
        "POST",
        "/v1/delegation-tokens",
        "Make a delegation token; its HMAC is in this answer only (Kafka's CreateDelegationToken)",
        token_handlers.create_token,
        tag="delegation tokens",
        permission=ByItem(
            "nothing for oneself; CREATE_TOKENS on User for another owner; never by a delegation token, nor by a node"
        ),
        parameters=Nothing,
        body=CreateDelegationTokenRequest,
        reply=CreateDelegationTokenResponse,
        serving=Serving.ACTIVE,
        errors=(429,),
    ),
    route(
        "POST",
        "/v1/delegation-tokens/renew",
        "Let a delegation token live on (Kafka's RenewDelegationToken)",
        token_handlers.renew_token,
        tag="delegation tokens",
        permission=ByItem(_OF_OWNERS),
        parameters=Nothing,
        body=RenewDelegationTokenRequest,
        reply=RenewDelegationTokenResponse,
        serving=Serving.ACTIVE,
        errors=(404, 429),
    ),
    route(
        "POST",
        "/v1/delegation-tokens/expire",
        "Let a delegation token end, at once or later (Kafka's ExpireDelegationToken)",
        token_handlers.expire_token,
        tag="delegation tokens",
        permission=ByItem(_OF_OWNERS),
        parameters=Nothing,
        body=ExpireDelegationTokenRequest,
        reply=ExpireDelegationTokenResponse,
        serving=Serving.ACTIVE,
        errors=(404, 429),
    ),
)
