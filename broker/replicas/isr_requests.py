"""Asks the controller for other ISRs: with leader, partition and broker epochs, one request in flight a leader.

Kafka's ``DefaultAlterPartitionManager``. What comes of it arrives through the log, like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from quorate.broker.controllers.isr_proposals import IsrProposals
from quorate.broker.own_tasks import OwnTasks
from quorate.broker.replicas.claims import Claims
from quorate.broker.replicas.isr_book import IsrBook
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown, QuorateError

if TYPE_CHECKING:
    from quorate.broker.controllers.controller_rpc import ControllerRpc

log = structlog.get_logger(__name__)

#: Partitions of one request. The controller takes 10,000 records an operation; smaller requests let others in between.
PARTITIONS_PER_REQUEST_MAX: Final = 5_000
#: Wait after a request that failed as a whole (Kafka's ``DefaultAlterPartitionManager``); doubled up to the maximum.
RETRY_FIRST_MS: Final = 50.0
RETRY_MAX_MS: Final = 2_000.0


@dataclass(slots=True)
class IsrCounters:
    """The counts of requests, for metrics."""

    requests: int = 0
    failed_requests: int = 0
    #: Answers for single partitions, by the name of their error code ("NONE": granted).
    answers: dict[str, int] = field(default_factory=dict)


class IsrRequests:
    """See the module.

    Args:
        epochs: gives the broker epoch of every broker here that may send now, by id.
        now_ms: the book's clock.
        on_answer: called when another request may leave.
        claims: is told of what is asked for and refused; None: nobody wants to know.
    """

    def __init__(
        self,
        rpc: ControllerRpc,
        book: IsrBook,
        epochs: Callable[[], Mapping[int, int]],
        now_ms: Callable[[], float],
        on_answer: Callable[[], None],
        claims: Claims | None = None,
    ) -> None:
        self.counters = IsrCounters()
        self._rpc = rpc
        self._book = book
        self._epochs = epochs
        self._now_ms = now_ms
        self._on_answer = on_answer
        self._claims = claims
        self._in_flight: set[int] = set()
        #: Consecutive failures of whole requests, by leader.
        self._failures: dict[int, int] = {}

    def send_due(self, tasks: OwnTasks, leaders: frozenset[int]) -> None:
        """Send what the book asks for now, of these brokers."""
        epochs = self._epochs()
        busy = (leaders - epochs.keys()) | self._in_flight
        for proposals in self._book.due(self._now_ms(), busy, PARTITIONS_PER_REQUEST_MAX):
            self._in_flight.add(proposals.leader)
            if self._claims is not None:
                self._claims.sent(proposals)
            sending = self._send(epochs[proposals.leader], proposals)
            tasks.create_task(sending, f"a request for ISRs of broker {proposals.leader}")

    async def _send(self, broker_epoch: int, proposals: IsrProposals) -> None:
        leader = proposals.leader
        self.counters.requests += 1
        try:
            codes = await self._rpc.alter_partition(broker_epoch, proposals)
        except QuorateError as error:
            failures = self._failures[leader] = self._failures.get(leader, 0) + 1
            self.counters.failed_requests += 1
            wait_ms = min(RETRY_FIRST_MS * 2.0 ** (failures - 1), RETRY_MAX_MS)
            self._book.postponed(proposals, self._now_ms() + wait_ms)
            if self._claims is not None and isinstance(error, ApiError) and not isinstance(error, OutcomeUnknown):
                self._claims.answered(proposals, np.full(len(proposals), error.code, np.int16))
            if failures == 1:
                log.warning("isr_requests.failed", leader=leader, partitions=len(proposals), reason=str(error))
        else:
            self._failures.pop(leader, None)
            self._book.answered(proposals, codes, self._now_ms())
            if self._claims is not None:
                self._claims.answered(proposals, codes)
            for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
                name = ErrorCode(int(code)).name
                self.counters.answers[name] = self.counters.answers.get(name, 0) + int(count)
        finally:
            self._in_flight.discard(leader)
            self._on_answer()
