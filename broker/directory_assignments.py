"""Says to the controllers in which log directories replicas lie that the metadata have in none (KIP-858).

Kafka's ``AssignmentsManager``: one request in flight a broker, each of so many replicas at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from quorate.broker.directories.directory_choice import Replica, UnplacedReplicas, choose_directories
from quorate.broker.own_tasks import OwnTasks
from quorate.broker.publisher import Manifest, MetadataPublisher
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

if TYPE_CHECKING:
    from quorate.broker.controllers.controller_rpc import ControllerRpc

log = structlog.get_logger(__name__)

#: Replicas of one request (Kafka's ``AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST``).
REPLICAS_PER_REQUEST_MAX: Final = 2_250
#: Wait after a request that failed, doubled up to the maximum (Kafka's ``AssignmentsManager``).
RETRY_FIRST_MS: Final = 100.0
RETRY_MAX_MS: Final = 10_000.0
#: What was granted shows in an image by then, or is said again.
_SHOWN_MS: Final = 5_000.0


@dataclass(slots=True)
class _BrokerAssignments:
    """The assignments that were reported for one broker."""

    #: Granted, and not in the image yet.
    said: dict[Replica, Uuid] = field(default_factory=dict)
    said_at_ms: float = 0.0
    is_in_flight: bool = False
    failures: int = 0
    next_ms: float = 0.0


class DirectoryAssignments(MetadataPublisher):
    """See the module. All calls are on the event loop's thread.

    Args:
        epochs: gives the broker epoch of every broker here that may speak now, by id.
        begun_anew: those of them that take up what lay in directories that they do not have any more.
    """

    def __init__(
        self,
        rpc: ControllerRpc,
        epochs: Callable[[], Mapping[int, int]],
        begun_anew: Callable[[], frozenset[int]],
        now_ms: Callable[[], float],
    ) -> None:
        self._rpc = rpc
        self._epochs = epochs
        self._begun_anew = begun_anew
        self._now_ms = now_ms
        self._image = EMPTY_IMAGE
        self._unplaced = UnplacedReplicas()
        self._brokers: dict[int, _BrokerAssignments] = {}
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:
        return "directory-assignments"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self._image = image
        self._changed.set()

    def wake(self) -> None:
        """A broker here may speak now that could not before, or one of its directories has failed."""
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with OwnTasks() as tasks:
            while True:
                self._changed.clear()
                epochs = self._epochs()
                self._unplaced.update(self._image, sorted(epochs), self._begun_anew())
                wait_ms = min((self._look(tasks, *one) for one in epochs.items()), default=RETRY_MAX_MS)
                try:
                    async with asyncio.timeout(wait_ms / 1000):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    def _look(self, tasks: OwnTasks, broker_id: int, broker_epoch: int) -> float:
        """Say what is to be said of one broker now; how long nothing will be, in milliseconds."""
        state, now_ms = self._brokers.setdefault(broker_id, _BrokerAssignments()), self._now_ms()
        known = self._image.cluster.brokers.get(broker_id)
        if state.is_in_flight or known is None or known.epoch != broker_epoch:
            return RETRY_MAX_MS
        if now_ms < state.next_ms:
            return state.next_ms - now_ms
        unplaced = self._unplaced.of(broker_id)
        if now_ms - state.said_at_ms > _SHOWN_MS:
            state.said = {}
        state.said = {replica: state.said[replica] for replica in unplaced if replica in state.said}
        due = [replica for replica in unplaced if replica not in state.said][:REPLICAS_PER_REQUEST_MAX]
        if due:
            chosen = choose_directories(self._image, broker_id, due, list(state.said.values()))
            state.is_in_flight = True
            tasks.create_task(
                self._say(broker_id, broker_epoch, state, chosen), f"a request about directories of broker {broker_id}"
            )
        return _SHOWN_MS if unplaced else RETRY_MAX_MS

    async def _say(
        self, broker_id: int, broker_epoch: int, state: _BrokerAssignments, chosen: dict[Replica, Uuid]
    ) -> None:
        try:
            codes = await self._rpc.assign_replicas_to_dirs(broker_id, broker_epoch, chosen)
        except QuorateError as error:
            if not state.failures:
                log.warning("directories.not_said", broker=broker_id, replicas=len(chosen), reason=str(error))
            self._postpone(state)
        else:
            granted = {replica: chosen[replica] for replica, code in codes.items() if code is ErrorCode.NONE}
            state.said |= granted
            state.said_at_ms = self._now_ms()
            log.info("directories.said", broker=broker_id, replicas=len(granted))
            if len(granted) == len(chosen):
                state.failures = 0
            else:
                self._postpone(state)
        finally:
            state.is_in_flight = False
            self._changed.set()

    def _postpone(self, state: _BrokerAssignments) -> None:
        state.next_ms = self._now_ms() + min(RETRY_FIRST_MS * 2.0**state.failures, RETRY_MAX_MS)
        state.failures = min(state.failures + 1, 30)
