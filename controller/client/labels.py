"""The client's requests about labels."""

from __future__ import annotations

from collections.abc import AsyncIterator

from quorate.controller.client.access import Read, Write
from quorate.controller.protocol.labels import (
    AlterLabelsRequest,
    AlterLabelsResponse,
    DescribedLabel,
    DescribeLabelsResponse,
    LabelEntry,
    LabelKind,
)
from quorate.metadata_log.arguments import checked_calls
from quorate.metadata_log.errors import ApiError, ErrorCode, InvalidArgument


@checked_calls
class LabelClient:
    """A part of ``client.client.ControllerClient``, and raises what that does. All reads are linearizable."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def alter(self, request: AlterLabelsRequest) -> AlterLabelsResponse:
        """Set and remove labels, all of them if all conditions hold, or none.

        Raises:
            ApiError: INVALID_UPDATE_VERSION, a condition does not hold; ``details`` has what the label is.
        """
        return await self._write("/v1/labels", request, AlterLabelsResponse)

    async def set(self, resource: str, key: str, value: str | None) -> AlterLabelsResponse:
        """Set one label whatever it is now; None removes it.

        Raises:
            ApiError: INVALID_REQUEST, no label can be so; nothing was sent.
        """
        return await self.alter(AlterLabelsRequest(changes=[_entry(resource, key, value)]))

    async def compare_and_set(
        self, resource: str, key: str, expected: str | None, value: str | None
    ) -> AlterLabelsResponse:
        """Set one label if it is what is expected; None: if it is not there, or to remove it.

        Raises:
            ApiError: INVALID_UPDATE_VERSION, it is something else; ``details["present"]`` has what. INVALID_REQUEST, no
                label can be so; nothing was sent.
        """
        change, condition = _entry(resource, key, value), _entry(resource, key, expected)
        return await self.alter(AlterLabelsRequest(changes=[change], conditions=[condition]))

    async def describe(
        self,
        *,
        resource: str | None = None,
        kind: LabelKind | None = None,
        topic: str | None = None,
        namespace: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> DescribeLabelsResponse:
        """One page of labels that meet all that is given.

        Raises:
            ApiError: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, no ``resource`` can be called so.
        """
        wanted = {
            "resource": resource, "kind": kind, "topic": topic, "namespace": namespace, "after": after, "limit": limit,
        }  # fmt: skip
        parameters: dict[str, str | int] = {name: value for name, value in wanted.items() if value is not None}
        parameters["consistency"] = "linearizable"
        return await self._read("/v1/labels", DescribeLabelsResponse, parameters)

    async def of(self, resource: str) -> dict[str, str]:
        """All labels of one resource, by key; of one that has none, or is not there, an empty map.

        Raises:
            ApiError: as ``describe``.
        """
        return {one.key: one.value for one in (await self.describe(resource=resource)).labels}

    async def all(
        self,
        *,
        resource: str | None = None,
        kind: LabelKind | None = None,
        topic: str | None = None,
        namespace: str | None = None,
    ) -> AsyncIterator[DescribedLabel]:
        """Labels page by page, each page from the newest state."""
        after = None
        while True:
            page = await self.describe(resource=resource, kind=kind, topic=topic, namespace=namespace, after=after)
            for label in page.labels:
                yield label
            after = page.next_after
            if after is None:
                return


def _entry(resource: str, key: str, value: str | None) -> LabelEntry:
    try:
        return LabelEntry(resource=resource, key=key, value=value)
    except InvalidArgument as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
