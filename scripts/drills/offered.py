"""Writes that are offered at a steady rate, whatever becomes of those before: a pool of clients, each write counted.

A write is the smallest change there is, the quota of a user whom nobody is: one record, and no broker has anything to
do for it, as several have for a topic. Each has a user of its own, so that every single one can be looked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterQuotaOp,
    QuotaEntityPart,
)
from quorate.metadata_log.errors import ApiError, ErrorCode

#: Writes offered a second.
RATE: Final = 500
#: Writes under way at once, at most: the rate is kept while a write takes ``WRITERS / RATE`` seconds at most. Where a
#: machine cannot keep it, whoever else writes waits behind so many, and many more would be all that he notices.
WRITERS: Final = 24
#: After so many writes a writer is another client with another connection, to which everybody shows himself anew.
_WRITES_OF_A_CLIENT: Final = 20
_USER: Final = "user"
_QUOTA: Final = "producer_byte_rate"
_REMOVED_AT_ONCE: Final = 500


class OfferedWrites:
    """Write ``n`` is due ``n / RATE`` seconds after this was made. Who is late catches up: no write is left out."""

    def __init__(self, client_of: Callable[[int], ControllerClient], prefix: str) -> None:
        """``client_of``: makes a client for the writer of that number. ``prefix``: of the names of what is written."""
        self._client_of = client_of
        self._prefix = prefix
        self._begun_at = time.monotonic()
        self._ends_at = float("inf")
        self._answered_at = self._begun_at
        #: How many there were.
        self.offered = 0
        #: How many were answered by an error, or not at all.
        self.refused = 0
        #: Names of the users whose quota was set.
        self.acknowledged: list[str] = []

    async def run(self) -> None:
        """Write until ``end``, and then until all that was offered is answered."""
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(self._write(number))

    def end(self, at_least_s: float) -> None:
        """Offer no more, or not after so many seconds since the begin, where these have not passed yet."""
        self._ends_at = max(time.monotonic(), self._begun_at + at_least_s)

    @property
    def per_s(self) -> float:
        """Writes acknowledged a second, until the last one was answered."""
        return len(self.acknowledged) / max(self._answered_at - self._begun_at, 1 / RATE)

    async def _write(self, writer: int) -> None:
        while self._next_due_at < self._ends_at:
            async with self._client_of(writer) as client:
                for _ in range(_WRITES_OF_A_CLIENT):
                    if (due_at := self._next_due_at) >= self._ends_at:
                        break
                    name = f"{self._prefix}-{self.offered}"
                    self.offered += 1
                    await asyncio.sleep(due_at - time.monotonic())
                    await self._set(client, name)

    @property
    def _next_due_at(self) -> float:
        return self._begun_at + self.offered / RATE

    async def _set(self, client: ControllerClient, name: str) -> None:
        entry = AlterClientQuotasEntry(entity=[_user(name)], ops=[AlterQuotaOp(key=_QUOTA, value=1.0)])
        try:
            reply = await client.access.alter_client_quotas(AlterClientQuotasRequest(entries=[entry]))
            is_set = reply.entries[0].error_code is ErrorCode.NONE
        except ApiError:
            is_set = False
        self._answered_at = time.monotonic()
        if is_set:
            self.acknowledged.append(name)
        else:
            self.refused += 1


async def written(client: ControllerClient, prefix: str) -> set[str]:
    """Names that are there of what was offered under a prefix."""
    described = await client.access.describe_client_quotas({_USER: ("ANY", None)}, is_strict=True)
    names = {entry.entity[0].entity_name for entry in described.entries}
    return {name for name in names if name is not None and name.startswith(prefix)}


async def remove_written(client: ControllerClient, prefix: str) -> None:
    """Take away what was offered under a prefix."""
    names = sorted(await written(client, prefix))
    gone = [AlterQuotaOp(key=_QUOTA, remove=True)]
    for begin in range(0, len(names), _REMOVED_AT_ONCE):
        some = names[begin : begin + _REMOVED_AT_ONCE]
        entries = [AlterClientQuotasEntry(entity=[_user(name)], ops=gone) for name in some]
        await client.access.alter_client_quotas(AlterClientQuotasRequest(entries=entries))


def _user(name: str) -> QuotaEntityPart:
    return QuotaEntityPart(entity_type=_USER, entity_name=name)
