"""The client's requests about client quotas, SCRAM credentials and ACLs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from pydantic import BaseModel

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
    DescribeClientQuotasResponse,
    QuotaMatch,
)
from quorate.controller.protocol.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from quorate.metadata_log.arguments import checked_calls

R = TypeVar("R", bound=BaseModel)


class Read(Protocol):
    """``ControllerClient``'s way to ask, again where that helps."""

    async def __call__(
        self, path: str, reply: type[R], given: Mapping[str, str | int] | None = None, body: BaseModel | None = None
    ) -> R:
        """The reply to a `GET` with parameters; to a `POST` where a question is too long for them."""


class Write(Protocol):
    """``ControllerClient``'s way to change something, sent once."""

    async def __call__(self, path: str, body: BaseModel, reply: type[R]) -> R:
        """The reply to a `POST`."""


@checked_calls
class AccessClient:
    """A part of ``client.client.ControllerClient``, and raises what that does. All reads are linearizable."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def describe_client_quotas(
        self, wanted: Mapping[str, tuple[QuotaMatch, str | None]], *, is_strict: bool = False
    ) -> DescribeClientQuotasResponse:
        """Quotas of the entities that a filter asks for.

        Args:
            wanted: by type, how its name is matched, and the name where that is EXACT.
            is_strict: only entities of exactly these types.
        """
        parameters = _LINEARIZABLE | {"strict": str(is_strict).lower()}
        for type_, (match_type, name) in wanted.items():
            parameter = type_.replace("-", "_")
            parameters[f"{parameter}_match"] = match_type
            if name is not None:
                parameters[parameter] = name
        return await self._read("/v1/client-quotas", DescribeClientQuotasResponse, parameters)

    async def alter_client_quotas(self, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        """Set and remove quotas."""
        return await self._write("/v1/client-quotas", request, AlterClientQuotasResponse)

    async def describe_user_scram_credentials(self, user: str | None = None) -> DescribeUserScramCredentialsResponse:
        """Credentials of one user or of everybody."""
        parameters = _LINEARIZABLE | ({} if user is None else {"user": user})
        return await self._read("/v1/users", DescribeUserScramCredentialsResponse, parameters)

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Make, replace and remove credentials."""
        return await self._write("/v1/users", request, AlterUserScramCredentialsResponse)

    async def describe_acls(self, wanted: AclFilter) -> DescribeAclsResponse:
        """The ACLs that a filter means."""
        return await self._read("/v1/acls", DescribeAclsResponse, _LINEARIZABLE | _given(wanted))

    async def create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        """Create ACLs; those that are there already stay as they are."""
        return await self._write("/v1/acls", request, CreateAclsResponse)

    async def delete_acls(self, request: DeleteAclsRequest) -> DeleteAclsResponse:
        """Remove what filters mean."""
        return await self._write("/v1/acls/delete", request, DeleteAclsResponse)


_LINEARIZABLE: dict[str, str | int] = {"consistency": "linearizable"}


def _given(wanted: AclFilter) -> dict[str, str]:
    """A filter as parameters, without what it does not ask for."""
    names = {
        "resource_type": wanted.resource_type_filter,
        "resource_name": wanted.resource_name_filter,
        "pattern_type": wanted.pattern_type_filter,
        "principal": wanted.principal_filter,
        "host": wanted.host_filter,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }
    return {name: value for name, value in names.items() if value is not None}
