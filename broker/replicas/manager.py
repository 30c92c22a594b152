"""The plug-in point for what decides who is in sync: the rehearsal's model, or a service that holds data.

A replica manager is a publisher, so it is told of every image. It has an ISR book, by which the leaders here ask for
ISRs; what it writes into that book is its business.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.isr_requests import IsrCounters
from quorate.metadata_log.errors import InvalidArgument
from quorate.metadata_log.ids import Uuid

if TYPE_CHECKING:
    from quorate.broker.controllers.controller_rpc import ControllerRpc


@dataclass(frozen=True, slots=True)
class Station:
    """The means that a replica manager is given by the process that it works in."""

    rpc: ControllerRpc
    #: Id of the cluster; "" until it is known.
    cluster_id: Callable[[], str]
    #: Where this process serves HTTP; None while it does not.
    serves_at: Callable[[], Endpoint | None]
    #: Brokers that are played here and are not over.
    played: Callable[[], frozenset[int]]
    #: Of those the ones that hold a registration, and so may speak, with its epoch.
    epochs: Callable[[], Mapping[int, int]]
    #: Monotonic milliseconds.
    now_ms: Callable[[], float]
    #: Lets a broker ask to be unfenced; more than once is no harm.
    ready_to_unfence: Callable[[int], None]
    #: Lets a broker ask to be fenced, until it is ready again.
    hold_unfencing: Callable[[int], None]
    #: Lets a broker say with a heartbeat which of its log directories have failed.
    directories_changed: Callable[[int], None]
    #: These log directories of a broker, and no others, are to take no new replicas.
    cordon: Callable[[int, Collection[Uuid]], None]
    #: Until when a broker can count on its session, by ``now_ms``; -inf = it cannot (``lifecycle.lease``).
    session_valid_until_ms: Callable[[int], float]
    #: Calls a method of the manager with arguments; a fault of it is noted as one of ``on_metadata_update`` is.
    call: Callable[..., None]


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """A replica manager's account of itself."""

    #: What the ISRs of the partitions that are led here rest on.
    notice: str
    moves_data: bool
    #: Replicas of partitions led here that are outside the ISR.
    outside: int
    #: Replicas here that do not hold what their leader has; None: it does not know.
    copying: int | None
    counters: IsrCounters


class ReplicaManager(MetadataPublisher):
    """Keeps the ISRs of what is led here. All calls are on the event loop's thread."""

    wants_every_offset = True  # an older image than the one before is known by its offset

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._failed_directories: dict[int, list[Uuid]] = {}
        #: None before ``begin``, and when the worker is over.
        self.station: Station | None = None

    def begin(self, station: Station) -> None:
        """Called first, by the worker that it is given to; who overrides it calls this one.

        Raises:
            InvalidArgument: it is another worker's, which is not over.
        """
        if self.station is not None:
            said = f"{type(self).__name__} {self.name!r} is at work for another worker: make one for each"
            raise InvalidArgument(f"replicas: {said}")
        self.station = station

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled. Called once there is an image and the brokers register."""

    @abstractmethod
    def report(self) -> ReplicaReport:
        """The manager's account of itself."""

    def failed_directories(self, broker_id: int) -> Sequence[Uuid]:
        """Log directories of a broker here that have failed since it registered; said with its heartbeats."""
        return self._failed_directories.get(broker_id, ())

    def directory_failed(self, broker_id: int, directory: Uuid) -> None:
        """A log directory of a broker here is lost: the controllers take its replicas offline (KIP-858).

        It stays lost for as long as this process runs. A broker that has lost all of its directories ends.
        """
        failed = self._failed_directories.setdefault(broker_id, [])
        if directory not in failed:
            failed.append(directory)
            if self.station is not None:
                self.station.directories_changed(broker_id)

    def cordon_directories(self, broker_id: int, directories: Collection[Uuid]) -> None:
        """These log directories of a broker here take no new replicas from now on, its others do (KIP-1066)."""
        if self.station is not None:
            self.station.cordon(broker_id, directories)

    def broker_epoch(self, broker_id: int) -> int | None:
        """The epoch under which a broker here is registered; None if it is not, or not any more."""
        return None if self.station is None else self.station.epochs().get(broker_id)

    def has_session(self, broker_id: int) -> bool:
        """Whether the session of a broker here cannot have ended by now, so that nobody else was elected for it.

        To be asked whenever something is answered that must not be stale: a process that was stopped, and goes on, does
        so before anybody is told of anything. An administrator who unregisters a broker that lives ends its session
        without waiting for it; of elections that are no consequence of a session's end it says nothing.
        """
        return self.station is not None and self.station.now_ms() < self.station.session_valid_until_ms(broker_id)

    def on_session_lost(self, broker_id: int) -> None:
        """The session of a broker here may have ended: from now on ``has_session`` says no. Close what must not serve.

        Called within a turn of the event loop after that; the controllers have not elected anybody in its place yet,
        unless this process was stopped.
        """

    def on_session_back(self, broker_id: int) -> None:
        """A broker here counts on its session again, or for the first time. What it leads, the image says."""

    def wake(self) -> None:
        """A broker here may speak now that could not before, or is over."""
        self._changed.set()

    async def _wait(self, wait_ms: float) -> None:
        """Until something happens, or some time has passed."""
        try:
            async with asyncio.timeout(None if wait_ms == float("inf") else wait_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            return
