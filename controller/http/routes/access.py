"""The rows of the route table that are about client quotas, SCRAM credentials and ACLs."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.access_models import AclParameters, QuotaParameters, UserParameters
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import access as access_handlers
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.access import AccessOperations
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import OnCluster
from quorate.controller.protocol.acls import DescribeAclsResponse
from quorate.controller.protocol.quotas import DescribeClientQuotasResponse
from quorate.controller.protocol.scram import DescribeUserScramCredentialsResponse


def _access(operations: Operations) -> AccessOperations:
    return operations.access


ACCESS_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/client-quotas",
        "Client quotas of the entities that a filter asks for (Kafka's DescribeClientQuotas)",
        access_handlers.describe_client_quotas,
        tag="quotas",
        permission=OnCluster("DESCRIBE_CONFIGS"),
        parameters=QuotaParameters,
        body=Nothing,
        reply=DescribeClientQuotasResponse,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/client-quotas",
        "Set and remove client quotas (Kafka's AlterClientQuotas)",
        AccessOperations.alter_client_quotas,
        tag="quotas",
        permission=OnCluster("ALTER_CONFIGS"),
        of=_access,
        is_bulk=True,
        errors=(409, 422, 429),
    ),
    route(
        "GET",
        "/v1/users",
        "Users and the mechanisms of their SCRAM credentials (Kafka's DescribeUserScramCredentials)",
        access_handlers.describe_user_scram_credentials,
        tag="users",
        permission=OnCluster("DESCRIBE"),
        parameters=UserParameters,
        body=Nothing,
        reply=DescribeUserScramCredentialsResponse,
        serving=Serving.CONSISTENT,
        is_bulk=True,
        errors=(404,),
    ),
    write(
        "/v1/users",
        "Make, replace and remove SCRAM credentials (Kafka's AlterUserScramCredentials)",
        AccessOperations.alter_user_scram_credentials,
        tag="users",
        permission=OnCluster("ALTER"),
        of=_access,
        is_bulk=True,
        errors=(404, 409, 422, 429),
    ),
    route(
        "GET",
        "/v1/acls",
        "The ACLs that a filter means (Kafka's DescribeAcls)",
        access_handlers.describe_acls,
        tag="acls",
        permission=OnCluster("DESCRIBE"),
        parameters=AclParameters,
        body=Nothing,
        reply=DescribeAclsResponse,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/acls",
        "Create ACLs (Kafka's CreateAcls)",
        AccessOperations.create_acls,
        tag="acls",
        permission=OnCluster("ALTER"),
        of=_access,
        is_bulk=True,
        errors=(409, 422, 429),
    ),
    write(
        "/v1/acls/delete",
        "Remove the ACLs that filters mean (Kafka's DeleteAcls)",
        AccessOperations.delete_acls,
        tag="acls",
        permission=OnCluster("ALTER"),
        of=_access,
        is_bulk=True,
        errors=(409, 422, 429),
    ),
)
