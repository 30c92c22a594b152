"""Handlers for client quotas, SCRAM credentials and ACLs."""

from __future__ import annotations

from quorate.controller.api.access_models import AclParameters, QuotaParameters, UserParameters
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers.common import is_linearizable
from quorate.controller.http.routing import Call
from quorate.controller.protocol.acls import AclFilter, DescribeAclsResponse
from quorate.controller.protocol.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilterComponent,
)
from quorate.controller.protocol.scram import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
from quorate.controller.quotas.entities import CLIENT_ID, IP, USER


async def describe_client_quotas(
    call: Call, parameters: QuotaParameters, body: Nothing
) -> DescribeClientQuotasResponse:
    given = (
        (USER, parameters.user_match, parameters.user),
        (CLIENT_ID, parameters.client_id_match, parameters.client_id),
        (IP, parameters.ip_match, parameters.ip),
    )
    components = [
        QuotaFilterComponent(entity_type=type_, match_type=match_type or "EXACT", match=name)
        for type_, match_type, name in given
        if match_type is not None or name is not None
    ]
    return await call.node.operations.access.describe_client_quotas(
        DescribeClientQuotasRequest(components=components, strict=parameters.strict),
        is_linearizable=is_linearizable(parameters),
    )


async def describe_user_scram_credentials(
    call: Call, parameters: UserParameters, body: Nothing
) -> DescribeUserScramCredentialsResponse:
    users = None if parameters.user is None else [parameters.user]
    return await call.node.operations.access.describe_user_scram_credentials(
        DescribeUserScramCredentialsRequest(users=users), is_linearizable=is_linearizable(parameters)
    )


async def describe_acls(call: Call, parameters: AclParameters, body: Nothing) -> DescribeAclsResponse:
    wanted = AclFilter(
        resource_type_filter=parameters.resource_type,
        resource_name_filter=parameters.resource_name,
        pattern_type_filter=parameters.pattern_type,
        principal_filter=parameters.principal,
        host_filter=parameters.host,
        operation=parameters.operation,
        permission_type=parameters.permission_type,
    )
    return await call.node.operations.access.describe_acls(wanted, is_linearizable=is_linearizable(parameters))
