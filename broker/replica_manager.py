"""The rehearsal replica manager: plays leader and follower for the brokers of this process, without any data.

It is a publisher. For every partition led from here it asks for an ISR with the replicas that its model says are caught
up, as a real leader would: with leader, partition and broker epochs, one request in flight a leader (Kafka's
``DefaultAlterPartitionManager``). What comes of it arrives through the log, like everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import structlog

from broker.controller_rpc import ControllerRpc
from broker.follower_model import NEVER, FollowerModel
from broker.isr_proposals import IsrProposals
from broker.publisher import Manifest, MetadataPublisher
from metadata_log.errors import ErrorCode, QuorateError
from snapshots.delta import MetadataDelta
from snapshots.image import MetadataImage

log = structlog.get_logger(__name__)

#: Partitions of one request. The controller takes 10,000 records an operation; smaller requests let others in between.
PARTITIONS_PER_REQUEST_MAX: Final = 5_000
#: Wait after a request that failed as a whole (Kafka's ``DefaultAlterPartitionManager``); doubled up to the maximum.
RETRY_FIRST_MS: Final = 50.0
RETRY_MAX_MS: Final = 2_000.0
#: What every output of it says.
NOTICE: Final = "rehearsal: no data are moved; a replica counts as caught up a set time after it began to follow"


@dataclass(slots=True)
class ReplicaCounters:
    """What the manager has asked for, for metrics."""

    requests: int = 0
    failed_requests: int = 0
    #: Answers for single partitions, by the name of their error code ("NONE": granted).
    answers: dict[str, int] = field(default_factory=dict)


class RehearsalReplicaManager(MetadataPublisher):
    """See the module. ``epochs`` gives the broker epoch of every broker here that may send now, by id."""

    def __init__(
        self,
        rpc: ControllerRpc,
        copy_ms: float,
        hosted: Callable[[], frozenset[int]],
        epochs: Callable[[], Mapping[int, int]],
        now_ms: Callable[[], float],
    ) -> None:
        self.counters = ReplicaCounters()
        self._model = FollowerModel(copy_ms)
        self._rpc = rpc
        self._hosted = hosted
        self._epochs = epochs
        self._now_ms = now_ms
        self._changed = asyncio.Event()
        self._in_flight: dict[int, asyncio.Task[None]] = {}
        #: Consecutive failures of whole requests, by leader.
        self._failures: dict[int, int] = {}

    @property
    def name(self) -> str:
        return "rehearsal-replica-manager"

    @property
    def copy_ms(self) -> float:
        """How long a replica follows before it counts as caught up."""
        return self._model.copy_ms

    @property
    def following_count(self) -> int:
        """Replicas outside the ISR that follow a leader here, as the model has it."""
        return self._model.following_count

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self._model.update(image, self._hosted(), self._now_ms())
        self._changed.set()

    def wake(self) -> None:
        """A broker here may send now that could not before."""
        self._changed.set()

    async def run(self) -> None:
        """Ask for ISR changes as they fall due, until cancelled."""
        log.info("replica_manager.started", notice=NOTICE, copy_ms=self._model.copy_ms)
        async with asyncio.TaskGroup() as requests:
            while True:
                self._changed.clear()
                now_ms = self._now_ms()
                self._send_due(requests, now_ms)
                wait_ms = self._model.next_due_after(now_ms) - now_ms
                try:
                    async with asyncio.timeout(None if wait_ms == NEVER else wait_ms / 1000):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    def _send_due(self, requests: asyncio.TaskGroup, now_ms: float) -> None:
        epochs = self._epochs()
        busy = (self._hosted() - epochs.keys()) | self._in_flight.keys()
        for proposals in self._model.due(now_ms, busy, PARTITIONS_PER_REQUEST_MAX):
            leader = proposals.leader
            task = requests.create_task(self._send(epochs[leader], proposals))
            self._in_flight[leader] = task

    async def _send(self, broker_epoch: int, proposals: IsrProposals) -> None:
        leader = proposals.leader
        self.counters.requests += 1
        try:
            codes = await self._rpc.alter_partition(broker_epoch, proposals)
        except QuorateError as error:
            failures = self._failures[leader] = self._failures.get(leader, 0) + 1
            self.counters.failed_requests += 1
            wait_ms = min(RETRY_FIRST_MS * 2.0 ** (failures - 1), RETRY_MAX_MS)
            self._model.postponed(proposals, self._now_ms() + wait_ms)
            if failures == 1:
                log.warning(
                    "replica_manager.request_failed", leader=leader, partitions=len(proposals), reason=str(error)
                )
        else:
            self._failures.pop(leader, None)
            self._model.answered(proposals, codes, self._now_ms())
            for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
                name = ErrorCode(int(code)).name
                self.counters.answers[name] = self.counters.answers.get(name, 0) + int(count)
        finally:
            del self._in_flight[leader]
            self._changed.set()
