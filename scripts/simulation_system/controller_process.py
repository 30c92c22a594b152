"""One controller process: what ``controller.server`` puts together, over the simulated disk, wire and clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from controller.active_role import ActiveRole, RoleSettings
from controller.bootstrap import fresh_records
from controller.checkpoint_pace import Unpaced
from controller.checkpoint_writer import CheckpointLimits, CheckpointWriter
from controller.client import ControllerClient
from controller.controller_config import ControllerConfig
from controller.controller_registration import own_registration
from controller.digest_memory import DigestMemory
from controller.digest_watch import DigestWatch
from controller.http.app import make_app
from controller.http.counters import Counters
from controller.http.digests import Digests
from controller.http.feed import FeedLimits, MetadataFeed
from controller.http.heard import HeardBrokers
from controller.http.log_feed import LogFeedSource
from controller.http.partition_counts import CountedImages
from controller.http.past import PastImages
from controller.http.ports import Node, Peer
from controller.leader_watch import LeaderWatch
from controller.operations import Operations
from controller.partition_search import PartitionSearch
from controller.quorum_controller import QuorumController
from controller.registrar import Registrar
from controller.seams import ControllerLimits, DecidedWrite
from controller.server import ServedCluster
from metadata_log.batch import checked_header
from metadata_log.errors import NotController, StorageError
from metadata_log.ids import Uuid
from quorum.config import QuorumConfig
from quorum.host import CommittedBatches, SnapshotReader
from quorum.node import QuorumNode
from quorum.storage import NodeStorage
from scripts.simulation.host import SimulatedNode
from scripts.simulation.state_machine import StateMachine
from scripts.simulation_system.http_wire import WireServer, WireSession
from scripts.simulation_system.loop import VirtualLoop
from snapshots.checkpoint import read_checkpoint
from snapshots.image_digest import EMPTY_DIGEST
from snapshots.replay_state import ReplayState

if TYPE_CHECKING:
    from scripts.simulation_system.world import SystemWorld

CLUSTER_ID: Final = "5L6g3nShT-eMCtK--X86sw"
SESSION_TIMEOUT_MS: Final = 2_000
#: Periodic work comes often, so that it meets everything else.
_ROLE: Final = RoleSettings(leader_balance_interval_ms=2_500.0, unclean_election_interval_ms=3_500.0)

#: How long a process that wakes up reads some of its sockets before it comes to the others.
_READING_SECONDS: Final = 0.003

#: Between two comparisons of a controller's state with the others'.
_WATCH_SECONDS: Final = 0.7


def url_of(node_id: int) -> str:
    """Where a controller serves HTTP."""
    return f"http://127.0.0.1:{node_id}"


class ControllerProcess(SimulatedNode):
    """A node of the simulated quorum whose listener is the production controller, with its HTTP application."""

    world: SystemWorld
    loop: VirtualLoop
    controller: QuorumController

    def __init__(self, world: SystemWorld, config: QuorumConfig) -> None:
        super().__init__(world, config)
        #: None while the process is down.
        self.http: WireServer | None = None
        #: The newest stable state whose digest was compared.
        self.digest = EMPTY_DIGEST

    # --- life ----------------------------------------------------------------------------------------

    def _begin(self, storage: NodeStorage) -> None:
        world = self.world
        self.loop = world.new_loop(f"controller {self.node_id}", self._rate, self._turned)
        self.digest = EMPTY_DIGEST
        with self.loop.entered():
            self._assemble(storage, Random(world.rng.getrandbits(64)))
            assert self.node is not None
            self.node.start()

    def stop(self) -> None:
        super().stop()
        self.loop.die()

    def hang_up(self, *, is_silent: bool) -> None:
        """Its connections end with it."""
        if self.http is not None:
            self.http.close(is_silent=is_silent)
            self.http = None

    def freeze(self) -> None:
        super().freeze()
        self.loop.freeze()

    def thaw(self) -> None:
        """What waited in the sockets is read: those of HTTP before those of the quorum, or after them."""
        if not self.is_frozen:
            return
        self.loop.thaw()
        if self.world.rng.random() < 0.5:
            self.world.scheduler.after(_READING_SECONDS, super().thaw)
        else:
            super().thaw()

    def _run(self, incarnation: int, action: Any, arguments: tuple[Any, ...], is_pump: bool = False) -> None:
        with self.loop.entered():
            super()._run(incarnation, action, arguments, is_pump)

    def _turned(self) -> None:
        if self.node is not None:
            self.world.after_event(self)

    # --- what it consists of -------------------------------------------------------------------------

    def _assemble(self, storage: NodeStorage, rng: Random) -> None:
        world, options = self.world, self.world.system
        faults = ProcessFaults(self)
        role = ActiveRole(
            ControllerConfig(self.node_id, CLUSTER_ID, session_timeout_ms=SESSION_TIMEOUT_MS),
            _ROLE,
            fresh_records(),
            _Chance(rng),
            lambda: new_uuid(rng),
        )
        self.quorum = ProcessQuorum(self)
        scheduler = _LoopClock(self)
        limits = ControllerLimits(options.queue_length_max, options.uncommitted_bytes_max)
        self.controller = QuorumController(self.node_id, self.quorum, role, scheduler, faults, limits)
        role.bind(self.controller)
        self.controller.on_decided = self._decided
        self.machine = ControllerMachine(self)
        self.node = QuorumNode(self.config, storage, self, self.machine, Random(rng.getrandbits(64)))
        checkpoints = self._checkpoint_writer(storage, scheduler)
        session = WireSession(world.wire, self.node_id)
        node = self._served(storage, role, faults, checkpoints)
        self.http = WireServer(world.wire, self.loop, make_app(node), session, world.answered)
        client = WireClient(world.controller_urls, session)
        registration = own_registration(self.node_id, new_uuid(rng), [])
        registrar = Registrar(self.controller, registration, client)

        def stable_moved() -> None:
            node.feed.moved()
            node.digests.note(self.controller.stable)
            checkpoints.moved()
            registrar.moved()

        self.controller.on_stable = stable_moved
        self.loop.spawn(registrar.run())
        self.loop.spawn(_watch_digests(DigestWatch(node, client, faults, Counters())))

    def _checkpoint_writer(self, storage: NodeStorage, scheduler: _LoopClock) -> CheckpointWriter:
        assert self.node is not None
        options = self.world.system
        return CheckpointWriter(
            self.controller,
            storage.log,
            storage.checkpoints.covered_offset,
            self.node.write_checkpoint,
            self._checkpoint_written,
            CheckpointLimits(options.checkpoint_bytes, options.checkpoint_interval_ms),
            scheduler,
            Unpaced(),
            DigestMemory(),
        )

    def _served(
        self, storage: NodeStorage, role: ActiveRole, faults: ProcessFaults, checkpoints: CheckpointWriter
    ) -> Node:
        controller = self.controller
        assert self.node is not None
        cluster = ServedCluster(
            cast("Any", _Runtime(self.node)),
            storage,
            cast("Any", faults),
            Counters(),
            cast("Any", _Roomy()),
            controller.events,
            LeaderWatch(),
        )
        source = LogFeedSource(storage.log, lambda: controller.applied_offset, lambda: controller.is_active)
        feed_limits = FeedLimits(chunk_bytes_max=self.world.system.feed_bytes_max)
        return Node(
            cluster_id=CLUSTER_ID,
            peers={node_id: Peer(node_id, url_of(node_id)) for node_id in self.world.nodes},
            controller=controller,
            operations=Operations(controller, role),
            cluster=cluster,
            feed=MetadataFeed(source, feed_limits, self.now),
            checkpoints=storage.checkpoints,
            checkpoint_taking=checkpoints,
            past=PastImages(source, storage.checkpoints, lambda: controller.stable),
            counts=CountedImages(1),
            search=PartitionSearch(role.config),
            heard=HeardBrokers(controller.scheduler.monotonic_ms),
            digests=Digests(source, DigestMemory(), Unpaced()),
        )

    # --- what it reports -----------------------------------------------------------------------------

    def _decided(self, write: DecidedWrite) -> None:
        if write.origin is not None:
            self.world.checks.decided(self, write)

    def _checkpoint_written(self, end_offset: int, took_ms: float, error: StorageError | None) -> None:
        self.world.checkpoint_taken(self, error)


class ControllerMachine(StateMachine):
    """The quorum simulation's listener, which checks what it is handed, in front of the controller."""

    def __init__(self, owner: ControllerProcess) -> None:
        super().__init__(owner)
        self._process = owner

    def on_commit(self, batches: CommittedBatches) -> None:
        world = self._process.world
        for batch in batches:
            world.checks.committed(batch)
        super().on_commit(batches)
        self._process.controller.on_commit(batches)
        world.checks.state_of(self._process)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        process = self._process
        image = read_checkpoint(batches_in(reader.read()), reader.end_offset, reader.epoch)
        self.applied_end, self.applied_epoch = reader.end_offset, reader.epoch
        process.world.checks.loaded_checkpoint(process, reader.end_offset, reader.epoch)
        self.digest = process.world.checks.digests[reader.end_offset]
        process.controller.on_snapshot(ReplayState(image), reader.end_offset)
        process.world.checks.state_of(process)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        super().on_leader_change(leader_id, epoch)
        self._process.controller.on_leader_change(leader_id, epoch)


class ProcessQuorum:
    """``controller.seams.Quorum`` over the process's node."""

    def __init__(self, owner: ControllerProcess) -> None:
        self._owner = owner

    @property
    def _node(self) -> QuorumNode:
        assert self._owner.node is not None
        return self._owner.node

    @property
    def leader_id(self) -> int | None:
        return self._node.leader_id

    @property
    def log_end_offset(self) -> int:
        return self._node.log_end_offset

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        last = self._node.append(epoch, payload, record_count)
        assert self._owner.machine is not None
        self._owner.machine.pending[last + 1] = record_count
        return last

    def resign(self, epoch: int) -> None:
        self._node.resign(epoch)

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        self._node.read_barrier(done)


class WireClient(ControllerClient):
    """Production's client over the virtual wire."""

    def __init__(self, urls: list[str], session: WireSession, timeout_ms: float = 30_000.0) -> None:
        super().__init__(urls, timeout_ms=timeout_ms)
        self._wire_session = session

    def _session(self) -> Any:
        return self._wire_session


class ProcessFaults:
    """``controller.faults.FaultHandler``: any fault ends the run."""

    def __init__(self, owner: ControllerProcess) -> None:
        self._owner = owner
        self.sentences: list[str] = []

    def fault(self, what: str, error: Exception) -> None:
        self._owner.world.violation(f"controller {self._owner.node_id}: fault in {what}: {error!r}")

    def alarm(self, what: str, sentence: str | None) -> None:
        if sentence is not None:
            self._owner.world.violation(f"controller {self._owner.node_id}: alarm of {what}: {sentence}")

    def fatal(self, what: str, error: BaseException) -> None:
        self._owner.world.violation(f"controller {self._owner.node_id}: must stop: {what}: {error!r}")


async def _watch_digests(watch: DigestWatch) -> None:
    """Compare far more often than in production, whose interval depends on what digests cost in real time."""
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        if await watch.check():
            await watch.check(is_confirmed=True)


class _LoopClock:
    """``controller.event_queue.Scheduler`` on the process's loop."""

    def __init__(self, owner: ControllerProcess) -> None:
        self._owner = owner
        self._loop = owner.loop

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, callback)

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000

    def wall_ms(self) -> int:
        return self._owner.wall_ms()


class _Runtime:
    """What ``ServedCluster`` uses of a runtime."""

    def __init__(self, node: QuorumNode) -> None:
        self.node = node

    def silence(self, peer: int) -> float | None:
        """Its sockets have no clock of their own here."""
        return None


class _NeverFoundedAnew:
    """Of ``meta.properties`` what a controller says of itself."""

    generation = 0


class _Roomy:
    """A directory on a disk with room."""

    is_short_of_space = False
    meta = _NeverFoundedAnew()


class _Chance:
    """``controller.random_source.RandomSource`` from a seed."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def next_int(self, bound: int) -> int:
        return self._rng.randrange(bound)

    def next_ints(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self._rng.randrange(bound) for bound in bounds.tolist()], np.int64)


def new_uuid(rng: Random) -> Uuid:
    # The first bit is set, as in no id that Kafka keeps for itself.
    return bytes([0x80 | rng.getrandbits(7)]) + rng.randbytes(15)


def batches_in(data: bytes) -> Iterator[memoryview]:
    """The batches of a checkpoint file, each checked."""
    view, start = memoryview(data), 0
    while start < len(view):
        header = checked_header(view, start)
        yield view[start : start + header.size]
        start += header.size
