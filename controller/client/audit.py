"""The client's request for what one controller wrote down about who asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.controller.api.audit_models import AuditReply, RefusalsReply
from quorate.controller.client.connection import Connection, Request
from quorate.metadata_log.arguments import checked_calls

_PATH: Final = "/v1/audit"
_REFUSALS_PATH: Final = "/v1/audit/refusals"


@checked_calls
class AuditClient:
    """A part of ``controller.client.client.ControllerClient``. Each controller has lines of its own: it is named."""

    def __init__(self, connect: Callable[[str], Connection]) -> None:
        self._connect = connect

    async def page(self, url: str, start_offset: int, limit: int, timeout_ms: float) -> AuditReply:
        """The first lines about the records from an offset on.

        Raises:
            ApiError, NotSent, NoAnswer: this controller does not serve now.
        """
        wanted = {"start_offset": start_offset, "limit": limit}
        return (await self._connect(url).send(Request("GET", _PATH, timeout_ms, wanted))).model(AuditReply)

    async def refusals(self, url: str, limit: int, timeout_ms: float) -> RefusalsReply:
        """The newest of what it refused.

        Raises:
            As ``page``.
        """
        return (await self._connect(url).send(Request("GET", _REFUSALS_PATH, timeout_ms, {"limit": limit}))).model(
            RefusalsReply
        )
