"""Requests about who may do what, and how much of it: client quotas, SCRAM credentials, ACLs."""

from __future__ import annotations

from quorate.controller.access.acls import decide_create_acls, decide_delete_acls, describe_acls
from quorate.controller.access.client_quotas import decide_alter_client_quotas, describe_client_quotas, host_names
from quorate.controller.access.host_names import resolvable
from quorate.controller.access.scram_credentials import (
    decide_alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.active_role import ActiveRole
from quorate.controller.protocol.acls import (
    AclFilter,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsResponse,
)
from quorate.controller.protocol.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from quorate.controller.protocol.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


class AccessOperations:
    """A part of ``controller.operations.operations.Operations``. Every method raises ``ApiError`` and its kinds."""

    def __init__(self, controller: QuorumController, role: ActiveRole) -> None:
        self._controller = controller
        self._role = role

    # --- client quotas -------------------------------------------------------------------------------

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, timeout_ms: float
    ) -> AlterClientQuotasResponse:
        """Set and remove quotas."""
        hosts = await resolvable(host_names(request))
        return await self._controller.append_write_event(
            "alter_client_quotas", lambda c: decide_alter_client_quotas(c.image, request, hosts), timeout_ms
        )

    async def describe_client_quotas(
        self, request: DescribeClientQuotasRequest, *, is_linearizable: bool
    ) -> DescribeClientQuotasResponse:
        """Quotas by entity."""
        return await self._controller.append_read_event(
            lambda image: describe_client_quotas(image, request), is_linearizable=is_linearizable
        )

    # --- SCRAM credentials ---------------------------------------------------------------------------

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest, timeout_ms: float
    ) -> AlterUserScramCredentialsResponse:
        """Make, replace and remove credentials."""
        return await self._controller.append_write_event(
            "alter_user_scram_credentials",
            lambda c: decide_alter_user_scram_credentials(c.image, request),
            timeout_ms,
        )

    async def describe_user_scram_credentials(
        self, request: DescribeUserScramCredentialsRequest, *, is_linearizable: bool
    ) -> DescribeUserScramCredentialsResponse:
        """The credentials that there are."""
        return await self._controller.append_read_event(
            lambda image: describe_user_scram_credentials(image, request), is_linearizable=is_linearizable
        )

    # --- ACLs ----------------------------------------------------------------------------------------

    async def create_acls(self, request: CreateAclsRequest, timeout_ms: float) -> CreateAclsResponse:
        """Create ACLs."""
        return await self._controller.append_write_event(
            "create_acls", lambda c: decide_create_acls(c.image, request, self._role.new_id), timeout_ms
        )

    async def delete_acls(self, request: DeleteAclsRequest, timeout_ms: float) -> DeleteAclsResponse:
        """Remove ACLs by filter."""
        return await self._controller.append_write_event(
            "delete_acls", lambda c: decide_delete_acls(c.image, request), timeout_ms
        )

    async def describe_acls(self, wanted: AclFilter, *, is_linearizable: bool) -> DescribeAclsResponse:
        """ACLs by filter."""
        return await self._controller.append_read_event(
            lambda image: describe_acls(image, wanted), is_linearizable=is_linearizable
        )
