"""Questions about the past: a controller whose log was cut behind the moment is passed over for one that reaches back.

Committed batches are the same everywhere, but each controller cuts its own log by its own checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from quorate.controller.api.errors import EARLIEST_OFFSET
from quorate.controller.api.resources import QuorumReply
from quorate.controller.client.attempts import Attempts, Sender
from quorate.controller.client.connection import Answer, Connection, NoAnswer, NotSent, Request
from quorate.metadata_log.errors import ApiError, ErrorCode


def sender_to(
    urls: Sequence[str], connect: Callable[[str], Connection], absent_ms: float | None, *, is_past: bool
) -> Sender:
    """The sender of a client of these controllers. ``absent_ms``: as in ``Attempts``."""
    attempts = Attempts([connect(url) for url in urls], absent_ms)
    return PastAttempts(attempts, connect, urls) if is_past else attempts


class PastAttempts:
    """``client.attempts.Sender``. Owned by one client. Remembers who reached back: pages of one answer follow."""

    def __init__(self, usual: Sender, connect: Callable[[str], Connection], urls: Sequence[str]) -> None:
        """``usual``: asks any controller; ``urls``: those that it asks."""
        self._usual = usual
        self._connect = connect
        self._urls = urls
        self._reaching: Connection | None = None

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """The answer of the first controller that reaches the moment.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, of the one that reaches back furthest where none does.
            NotController, OutcomeUnknown: as ``Attempts.send``.
        """
        if self._reaching is not None:
            try:
                return await self._reaching.send(request)
            except (NotSent, NoAnswer):
                self._reaching = None
        try:
            return await self._usual.send(request, is_repeatable=is_repeatable)
        except ApiError as refusal:
            if refusal.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return await self._ask_all(request, refusal)

    async def _ask_all(self, request: Request, refusal: ApiError) -> Answer:
        for url in await self._quorum(request):
            connection = self._connect(url)
            try:
                answer = await connection.send(request)
            except (NotSent, NoAnswer):
                continue
            except ApiError as error:
                if _earliest(error) < _earliest(refusal):
                    refusal = error
            else:
                self._reaching = connection
                return answer
        raise refusal

    async def _quorum(self, request: Request) -> list[str]:
        """Those that were named, and all that they know of."""
        question = replace(request, method="GET", path="/v1/quorum", parameters=None, body=None)
        voters = (await self._usual.send(question, is_repeatable=True)).model(QuorumReply).voters
        return list(dict.fromkeys([*self._urls, *(voter.http for voter in voters if voter.http)]))


def _earliest(refusal: ApiError) -> float:
    offset = refusal.details.get(EARLIEST_OFFSET)
    return float(offset) if isinstance(offset, int) else float("inf")
