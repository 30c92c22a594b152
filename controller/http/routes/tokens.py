"""The rows of the route table that are about delegation tokens."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import tokens as token_handlers
from quorate.controller.http.handlers.tokens import TokenParameters
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.operations.tokens import TokenOperations
from quorate.controller.permissions.permission import ByItem
from quorate.controller.protocol.tokens import DescribeDelegationTokenResponse


def _tokens(operations: Operations) -> TokenOperations:
    return operations.tokens


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
    write(
        "/v1/delegation-tokens",
        "Make a delegation token; its HMAC is in this answer only (Kafka's CreateDelegationToken)",
        TokenOperations.create_token,
        tag="delegation tokens",
        permission=ByItem("nothing for oneself; CREATE_TOKENS on User for another owner; never by a delegation token"),
        of=_tokens,
        errors=(429,),
    ),
    write(
        "/v1/delegation-tokens/renew",
        "Let a delegation token live on (Kafka's RenewDelegationToken)",
        TokenOperations.renew_token,
        tag="delegation tokens",
        permission=ByItem(_OF_OWNERS),
        of=_tokens,
        errors=(404, 429),
    ),
    write(
        "/v1/delegation-tokens/expire",
        "Let a delegation token end, at once or later (Kafka's ExpireDelegationToken)",
        TokenOperations.expire_token,
        tag="delegation tokens",
        permission=ByItem(_OF_OWNERS),
        of=_tokens,
        errors=(404, 429),
    ),
)
