"""Reads and findings that wait until a majority has confirmed that this node leads: so many at once, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorate.controller.engine.interfaces import Quorum, into
from quorate.metadata_log.errors import NotController, Overloaded


class ConfirmedReads:
    """Owned by the controller's loop thread."""

    def __init__(self, quorum: Quorum, most: int) -> None:
        self._quorum = quorum
        self._most = most
        #: What the quorum has not answered yet, reads among them that nobody waits for any more.
        self._unanswered = 0

    def confirm(self, done: Callable[[], None]) -> None:
        """Call ``done`` once a majority has said, after this call, that this node leads; never if it leads no more.

        Raises:
            NotController: this node does not lead.
        """

        def settle(outcome: int | NotController) -> None:
            if not isinstance(outcome, NotController):
                done()

        self._quorum.read_barrier(settle)

    async def offset(self) -> int:
        """An offset such that the state up to it (exclusive) has everything acknowledged before now.

        Raises:
            NotController: this node does not lead, or not any more. Overloaded: too many wait.
        """
        if self._unanswered >= self._most:
            message = f"{self._unanswered} reads wait until leadership is confirmed, {self._most} is the most"
            raise Overloaded(message, "unconfirmed_answers")
        confirmed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def settle(outcome: int | NotController) -> None:
            self._unanswered -= 1
            into(confirmed)(outcome)

        self._quorum.read_barrier(settle)
        self._unanswered += 1
        return await confirmed
