"""Several brokers in one process, over one loader and one image.

Order of a start, as in Kafka: follow the log until caught up, then register every broker, then unfence.
The process ends when none of its brokers is left: one whose id another process takes does not take the others along.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.controllers.feed import FollowedFeed
from quorate.broker.directory_assignments import DirectoryAssignments
from quorate.broker.environment import BrokerMachine, HostWatch
from quorate.broker.lifecycle.identity import BrokerIdentity, Endpoint, imported_identity, new_identity
from quorate.broker.lifecycle.last_run import LastRun
from quorate.broker.lifecycle.lifecycle import BrokerLifecycle, LifecycleTiming
from quorate.broker.lifecycle.session import BrokerSession
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.metadata.digest_watch import DigestSource
from quorate.broker.metadata.digests import ImageDigests
from quorate.broker.metadata.loader import LoaderTiming, MetadataLoader
from quorate.broker.metadata.metadata_cache import MetadataCache
from quorate.broker.own_tasks import OwnTasks
from quorate.broker.publisher import Manifest, MetadataPublisher, PublisherFaults, PublisherSet
from quorate.broker.replica_deletions import RehearsalDeletions
from quorate.broker.replicas.manager import ReplicaManager, Station
from quorate.broker.replicas.peers import PeerCalls
from quorate.broker.replicas.rehearsal import RehearsalReplicas
from quorate.broker.settings import (
    HTTP_LISTENER,
    BrokerSettings,
    FeedSettings,
    LifecycleSettings,
    parse_listeners,
)
from quorate.controller.protocol import Listener
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

log = structlog.get_logger(__name__)

#: What a controller that holds back its answer may take beyond that.
_ANSWER_MS: Final = 2_000


class NotCaughtUp(QuorateError):
    """No controller could be followed to the end of its log in time."""


@dataclass(frozen=True, slots=True)
class BrokerReadiness:
    """The readiness of one broker of this process."""

    broker_id: int
    state: LifecycleState
    broker_epoch: int
    #: Runs, and the image shows this very registration unfenced.
    is_ready: bool
    #: It is over, and the controller said that nothing depended on it any more.
    is_clean_stop: bool
    #: Why it failed, or what its last request met; None when all is well.
    trouble: str | None


class ControllerReads(FollowedFeed, DigestSource, Protocol):
    """One controller, as far as it is read: its feed, and digests of its states."""


@dataclass(frozen=True, slots=True)
class BrokerEnvironment:
    """The machine that a process of brokers runs on, or the simulation of the whole system."""

    #: Clock, chance and ids.
    machine: BrokerMachine
    feeds: Sequence[ControllerReads]
    rpc: ControllerRpc
    #: Other processes of brokers.
    peers: PeerCalls
    faults: PublisherFaults


class BrokerHost:
    """See the module. Made on the event loop; ``run`` owns everything in it."""

    def __init__(
        self,
        settings: BrokerSettings,
        environment: BrokerEnvironment,
        publishers: Sequence[MetadataPublisher],
        replicas: ReplicaManager,
    ) -> None:
        """``replicas``: what keeps the ISRs."""
        machine, rpc = environment.machine, environment.rpc
        self.settings = settings
        self.cache = MetadataCache()
        self.sessions: dict[int, BrokerSession] = {}
        self.replicas = replicas
        self._serves_at: Endpoint | None = None
        self.deletions = RehearsalDeletions(self._hosted)
        self.assignments = DirectoryAssignments(rpc, self._epochs, self._begun_anew, machine.now_ms)
        watch = RegistrationWatch(lambda: self.sessions, self._changed)
        own: list[MetadataPublisher] = [self.cache, watch, self.replicas, self.deletions, self.assignments]
        self.publishers = PublisherSet([*own, *publishers], environment.faults)
        self.loader = MetadataLoader(
            environment.feeds,
            self.publishers,
            loader_timing(settings.feed, settings.lifecycle.session_timeout_ms),
            machine,
            first_feed=min(settings.ids),  # so that the processes of a cluster spread over the controllers
        )
        self.digests = ImageDigests(self.loader)
        self._rpc = rpc
        self._machine = machine
        #: Called when a broker here is another state, or its registration is shown in another.
        self.on_change: Callable[[], None] = lambda: None
        self.replicas.begin(self._station(rpc, machine))
        self._stop_requests = 0
        self._stopping = asyncio.Event()

    async def run(self, endpoint: Endpoint | None, *watches: HostWatch) -> None:
        """Play brokers, with watches, until all of them are over. ``endpoint``: where HTTP is served; None: nowhere.

        Raises:
            StateDiffers: by a watch, the state is not the cluster's.
            NotCaughtUp: no controller could be followed in time. NotInTheImage: an imported broker is not registered.
            LoaderFault: the log cannot be replayed. StorageError: the file of the last run cannot be read or written.
            TaskCancelled: something else in the program cancelled one of its tasks.
        """
        loader = asyncio.create_task(self.loader.run(), name="metadata-loader")
        brokers = asyncio.create_task(self._play(endpoint), name="brokers")
        tasks = {loader, brokers}
        tasks |= {asyncio.create_task(watch.run(), name=type(watch).__name__) for watch in watches}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in (brokers,) if brokers.done() else done:
                task.result()  # the others only end by raising
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self.publishers.close()

    @property
    def rehearsal(self) -> RehearsalReplicas | None:
        """None where a service has put its own replica manager in its place."""
        return self.replicas if isinstance(self.replicas, RehearsalReplicas) else None

    def request_stop(self) -> None:
        """Controlled shutdown of every broker; asked twice, they leave at once."""
        self._stop_requests += 1
        self._stopping.set()
        for session in self.sessions.values():
            session.begin_shutdown()

    def readiness(self) -> list[BrokerReadiness]:
        """The readiness of every broker of this process, by id."""
        return [self._readiness(broker_id) for broker_id in sorted(self.settings.ids)]

    @property
    def is_ready(self) -> bool:
        """Whether every broker of this process is."""
        return all(broker.is_ready for broker in self.readiness())

    async def _play(self, endpoint: Endpoint | None) -> None:
        if not await self._first_image():
            return
        self._serves_at = endpoint
        cluster_id = self.loader.cluster_id
        last_run = LastRun(self.settings.last_run_file)
        ended = last_run.read()
        identities = [self._identity(broker_id, endpoint, ended.get(broker_id)) for broker_id in self.settings.ids]
        self._tell_what_is_taken_on_trust(identities)
        last_run.begin(self.settings.ids)
        self.sessions = {identity.broker_id: self._session(identity, cluster_id) for identity in identities}
        async with OwnTasks() as tasks:
            own = (self.replicas, self.assignments)
            helpers = [tasks.create_task(one.run(), f"the task of {one.name}") for one in own]
            async with OwnTasks() as sessions:
                for broker_id, session in self.sessions.items():
                    sessions.create_task(session.run(), f"the task of broker {broker_id}")
            for helper in helpers:
                tasks.cancel(helper)
        lives = {broker_id: session.lifecycle for broker_id, session in self.sessions.items()}
        left = {
            broker_id: life.broker_epoch for broker_id, life in lives.items() if life.state is LifecycleState.STOPPED
        }
        last_run.end(lives, left)

    def _tell_what_is_taken_on_trust(self, identities: Sequence[BrokerIdentity]) -> None:
        """An imported broker that goes on is taken to have been alive all the while; without a file nobody knows."""
        going_on = [identity.broker_id for identity in identities if not identity.begins_anew]
        if going_on and self.settings.last_run_file is None:
            log.warning(
                "brokers.last_run_unknown",
                brokers=going_on,
                reason="no last_run_file: one that was killed here comes back as if it had been alive all the while",
            )

    async def _first_image(self) -> bool:
        """Wait for an image that tells who the brokers are; False if the process is to stop before."""
        published = asyncio.create_task(self.loader.wait_until(self._is_up_to_date))
        stopping = asyncio.create_task(self._stopping.wait())
        timeout_ms = self.settings.lifecycle.registration_timeout_ms
        try:
            await asyncio.wait({published, stopping}, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
            if not published.done() and not stopping.done():
                reason = self.loader.trouble or "the log is still being replayed"
                raise NotCaughtUp(f"no controller could be followed within {timeout_ms / 1000:g} s: {reason}")
            return published.done()
        finally:
            published.cancel()
            stopping.cancel()
            await asyncio.wait({published, stopping})

    def _is_up_to_date(self) -> bool:
        """Whether the image holds everything that was committed before the epoch of the controller that is active.

        A controller that has just started knows less to be committed than is, and an image of that is of some time ago:
        a broker that it shows alive may have left since.
        """
        status = self.loader.status
        if status is None or status.leader_id is None or not self.publishers.is_published:
            return False
        return self.publishers.image.provenance.epoch >= status.epoch

    def _identity(self, broker_id: int, endpoint: Endpoint | None, last_run: int | None) -> BrokerIdentity:
        image, new_uuid = self.publishers.image, self._machine.new_uuid
        if self.settings.is_imported:
            return imported_identity(broker_id, image, new_uuid, last_run)
        rack, directories = self.settings.rack_of(broker_id), self.settings.log_directories
        own = [Listener(name=n, host=host, port=port) for n, host, port in parse_listeners(self.settings.listeners)]
        if endpoint is not None:
            own = [Listener(name=HTTP_LISTENER, host=endpoint.host, port=endpoint.port), *own]
        return new_identity(broker_id, image, own, rack, new_uuid, last_run, directories)

    def _session(self, identity: BrokerIdentity, cluster_id: str) -> BrokerSession:
        times, timing = self._machine, lifecycle_timing(self.settings.lifecycle)
        lifecycle = BrokerLifecycle(identity.broker_id, identity.incarnation_id, timing, times.now_ms(), times.draw)
        return BrokerSession(
            identity,
            lifecycle,
            self._rpc,
            cluster_id,
            applied_offset=lambda: self.loader.last_applied_offset,
            undeleted=lambda: self.deletions.said_by(identity.broker_id),
            now_ms=times.now_ms,
            failed_directories=lambda: self.replicas.failed_directories(identity.broker_id),
            on_change=self._state_changed,
            on_lease=lambda is_valid: self._lease_changed(identity.broker_id, is_valid),
        )

    def _readiness(self, broker_id: int) -> BrokerReadiness:
        session = self.sessions.get(broker_id)
        if session is None:
            # Stopped before it was begun: nobody knows of it.
            state = LifecycleState.STOPPED if self._stopping.is_set() else LifecycleState.REGISTERING
            is_over = state is LifecycleState.STOPPED
            return BrokerReadiness(
                broker_id, state, -1, is_ready=False, is_clean_stop=is_over, trouble=self.loader.trouble
            )
        lifecycle = session.lifecycle
        known = self.cache.broker(broker_id)
        is_in_image = known is not None and known.epoch == lifecycle.broker_epoch and not known.is_fenced
        return BrokerReadiness(
            broker_id,
            lifecycle.state,
            lifecycle.broker_epoch,
            is_ready=lifecycle.is_running and is_in_image,
            is_clean_stop=lifecycle.is_clean_stop,
            trouble=lifecycle.failure or lifecycle.trouble,
        )

    def _hosted(self) -> frozenset[int]:
        return frozenset(self.settings.ids)

    def _played(self) -> frozenset[int]:
        """Brokers that are not over."""
        over = (broker_id for broker_id, session in self.sessions.items() if session.lifecycle.is_over)
        return self._hosted().difference(over)

    def _ready_to_unfence(self, broker_id: int) -> None:
        session = self.sessions.get(broker_id)
        if session is not None:
            session.ready_to_unfence()

    def _station(self, rpc: ControllerRpc, machine: BrokerMachine) -> Station:
        return Station(
            rpc,
            lambda: self.loader.cluster_id,
            lambda: self._serves_at,
            self._played,
            self._epochs,
            machine.now_ms,
            self._ready_to_unfence,
            self._hold_unfencing,
            self._directories_changed,
            self._cordon,
            self._session_valid_until_ms,
            lambda told, *arguments: self.publishers.call(self.replicas.name, told, *arguments),
        )

    def _hold_unfencing(self, broker_id: int) -> None:
        session = self.sessions.get(broker_id)
        if session is not None:
            session.hold_unfencing()

    def _cordon(self, broker_id: int, directories: Collection[Uuid]) -> None:
        session = self.sessions.get(broker_id)
        if session is not None:
            session.cordon(directories)

    def _session_valid_until_ms(self, broker_id: int) -> float:
        session = self.sessions.get(broker_id)
        return -math.inf if session is None else session.lifecycle.lease.valid_until_ms

    def _lease_changed(self, broker_id: int, is_valid: bool) -> None:
        self._changed()
        told = self.replicas.on_session_back if is_valid else self.replicas.on_session_lost
        self.publishers.call(self.replicas.name, told, broker_id)

    def _directories_changed(self, broker_id: int) -> None:
        session = self.sessions.get(broker_id)
        if session is not None:
            session.directories_changed()
            self.assignments.wake()

    def _changed(self) -> None:
        self.on_change()

    def _state_changed(self) -> None:
        self._changed()
        self.replicas.wake()
        self.assignments.wake()

    def _begun_anew(self) -> frozenset[int]:
        """Brokers whose directories are all there, after a start."""
        sessions = self.sessions.items()
        return frozenset(id_ for id_, one in sessions if one.identity.begins_anew and not one.failed_directories)

    def _epochs(self) -> Mapping[int, int]:
        """Brokers that hold a registration, and so may speak as leaders."""
        return {
            broker_id: session.lifecycle.broker_epoch
            for broker_id, session in self.sessions.items()
            if session.lifecycle.is_registered and not session.lifecycle.is_over
        }


def lifecycle_timing(settings: LifecycleSettings) -> LifecycleTiming:
    """Intervals of a broker's life. ``LifecycleSettings()``: as by default."""
    return LifecycleTiming(
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        retry_max_ms=settings.retry_max_ms,
        registration_timeout_ms=settings.registration_timeout_ms,
        shutdown_timeout_ms=settings.shutdown_timeout_ms,
        directory_failure_timeout_ms=settings.directory_failure_timeout_ms,
    )


def loader_timing(settings: FeedSettings, silence_max_ms: float) -> LoaderTiming:
    """Waits and sizes of a loader. No controller is known after ``silence_max_ms``, or when an answer is overdue."""
    return LoaderTiming(
        wait_ms=settings.wait_ms,
        bytes_max=settings.answer_bytes_max,
        retry_max_ms=settings.retry_max_ms,
        silence_max_ms=max(silence_max_ms, settings.wait_ms + _ANSWER_MS),
    )


class RegistrationWatch(MetadataPublisher):
    """Tells each broker of this process what the log says of its registration."""

    def __init__(self, sessions: Callable[[], Mapping[int, BrokerSession]], seen: Callable[[], None]) -> None:
        """``seen``: called when all have been told."""
        self._sessions = sessions
        self._seen = seen
        self._image = EMPTY_IMAGE

    @property
    def name(self) -> str:
        return "registration-watch"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        before, self._image = self._image, image
        if image.cluster is before.cluster and image.features is before.features:
            return
        for broker_id, session in self._sessions().items():
            registration = image.cluster.brokers.get(broker_id)
            if registration is not None:
                session.saw_registration(registration, image.features.metadata_version)
        self._seen()
