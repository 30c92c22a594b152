"""The plug-in point for what decides who is in sync: the rehearsal's model, or a service that holds data.

A replica manager is a publisher, so it is told of every image. It has an ISR book, by which the leaders here ask for
ISRs; what it writes into that book is its business.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.isr_requests import IsrCounters
from quorate.metadata_log.ids import Uuid

if TYPE_CHECKING:
    from quorate.broker.controllers.controller_rpc import ControllerRpc


@dataclass(frozen=True, slots=True)
class Station:
    """What a replica manager is given by the process that it works in."""

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
    #: Lets a broker say with a heartbeat which of its log directories have failed.
    directories_changed: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What a replica manager says of itself."""

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
        self._say_directories: Callable[[int], None] | None = None

    def begin(self, station: Station) -> None:
        """Called once, before anything else; who overrides it calls this one."""
        self._say_directories = station.directories_changed

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled. Called once there is an image and the brokers register."""

    @abstractmethod
    def report(self) -> ReplicaReport:
        """How it stands."""

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
            if self._say_directories is not None:
                self._say_directories(broker_id)

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
