"""One controller process: what ``process.assembly`` puts together, over the simulated disk, wire and clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.background.checkpoint_writer import CheckpointLimits
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import Connection
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.targets import controller_url
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.interfaces import ControllerLimits, DecidedWrite
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http.app import make_app
from quorate.controller.logs.audit_reading import AuditReading
from quorate.controller.logs.reads import Reads
from quorate.controller.logs.refusals import Refusals
from quorate.controller.operations.bootstrap import fresh_records
from quorate.controller.process.assembly import ControllerParts, Environment, assemble
from quorate.controller.process.composition import Machine
from quorate.controller.process.digest_watch import ControllerDigestWatch
from quorate.controller.process.served_cluster import NodeFounding
from quorate.controller.process.settings_parts import default_parts
from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.ids import Uuid
from quorate.quorum.config import QuorumConfig
from quorate.quorum.host import CommittedBatches, QuorumListener, SnapshotReader
from quorate.quorum.node import QuorumNode
from quorate.quorum.storage.storage import NodeStorage
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.quorum.state_machine import StateMachine
from quorate.scripts.simulation.system.http_wire import WireServer, WireSession
from quorate.scripts.simulation.system.loop import VirtualLoop
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import EMPTY_DIGEST

if TYPE_CHECKING:
    from quorate.scripts.simulation.system.world import SystemWorld

CLUSTER_ID: Final = "5L6g3nShT-eMCtK--X86sw"
SESSION_TIMEOUT_MS: Final = 2_000
#: Periodic work comes often, so that it meets everything else.
_BALANCE_INTERVAL_MS: Final = 2_500.0
_UNCLEAN_ELECTION_INTERVAL_MS: Final = 3_500.0

#: How long a process that wakes up reads some of its sockets before it comes to the others.
_READING_SECONDS: Final = 0.003

#: Between two comparisons of a controller's state with the others'.
_WATCH_SECONDS: Final = 0.7


def url_of(node_id: int) -> str:
    """The URL at which a controller serves HTTP."""
    return f"http://127.0.0.1:{node_id}"


class SimulatedController(SimulatedNode):
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
        """Read all that waited in the sockets: those of HTTP before those of the quorum, or after them."""
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
        world = self.world

        def join(listener: QuorumListener) -> _Runtime:
            self.machine = ControllerMachine(self, listener)
            self.node = RecordingNode(self, storage, self.machine, Random(rng.getrandbits(64)))
            return _Runtime(self.node)

        def connect(urls: list[str]) -> WireClient:
            return WireClient(urls, session)

        def keep_account(controller: QuorumController) -> tuple[AuditReading, Refusals, Reads]:
            self.controller = controller
            controller.on_decided = self._decided
            return AuditReading(), Refusals(), Reads()

        session = WireSession(world.wire, self.node_id)
        faults = RunEndingFaults(self)
        environment = Environment(
            machine=Machine(_LoopClock(self), faults, _Chance(rng), lambda: new_uuid(rng)),
            counters=Counters(),
            background=_SimulatedBackground(),
            load=_image_of,
            connect=connect,
            join=join,
            keep_account=keep_account,
        )
        assembly = assemble(self._parts(), NodeFounding(CLUSTER_ID, bootstrap=fresh_records()), storage, environment)
        self.http = WireServer(world.wire, self.loop, make_app(assembly.node), session, world.answered)
        self.loop.spawn(assembly.registrar.run())
        self.loop.spawn(_watch_digests(assembly.digest_watch))

    def _parts(self) -> ControllerParts:
        options = self.world.system
        parts = default_parts(self.node_id, CLUSTER_ID)
        return replace(
            parts,
            config=replace(parts.config, session_timeout_ms=SESSION_TIMEOUT_MS),
            role=replace(
                parts.role,
                leader_balance_interval_ms=_BALANCE_INTERVAL_MS,
                unclean_election_interval_ms=_UNCLEAN_ELECTION_INTERVAL_MS,
            ),
            limits=ControllerLimits(options.queue_length_max, options.uncommitted_bytes_max),
            checkpoints=CheckpointLimits(options.checkpoint_bytes, options.checkpoint_interval_ms),
            feed=replace(parts.feed, chunk_bytes_max=options.feed_bytes_max),
            urls={node_id: url_of(node_id) for node_id in self.world.nodes},
        )

    # --- what it reports -----------------------------------------------------------------------------

    def _decided(self, write: DecidedWrite) -> None:
        if write.origin is not None:
            self.world.checks.decided(self, write)


class ControllerMachine(StateMachine):
    """The quorum simulation's listener, which checks what it is handed, in front of the controller's."""

    def __init__(self, owner: SimulatedController, behind: QuorumListener) -> None:
        super().__init__(owner)
        self._process = owner
        self._behind = behind

    def on_commit(self, batches: CommittedBatches) -> None:
        world = self._process.world
        for batch in batches:
            world.checks.committed(batch)
        super().on_commit(batches)
        self._behind.on_commit(batches)
        world.checks.state_of(self._process)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        process = self._process
        self.applied_end, self.applied_epoch = reader.end_offset, reader.epoch
        process.world.checks.loaded_checkpoint(process, reader.end_offset, reader.epoch)
        self.digest = process.world.checks.digests[reader.end_offset]
        self._behind.on_snapshot(reader)
        process.world.checks.state_of(process)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        super().on_leader_change(leader_id, epoch)
        self._behind.on_leader_change(leader_id, epoch)


class RecordingNode(QuorumNode):
    """A node of which is known what it was asked to append, and not told of yet."""

    def __init__(self, owner: SimulatedController, storage: NodeStorage, machine: StateMachine, rng: Random) -> None:
        super().__init__(owner.config, storage, owner, machine, rng)
        self._pending = machine

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        last = super().append(epoch, payload, record_count)
        self._pending.pending[last + 1] = record_count
        return last


class WireClient(ControllerClient):
    """Production's client over the virtual wire."""

    def __init__(self, urls: list[str], session: WireSession, timeout_ms: float = 30_000.0) -> None:
        # Before its connections are made, which keep it.
        self._wired = _WiredSession(session)
        super().__init__(urls, timeout_ms=timeout_ms)

    def _connect(self, url: str) -> Connection:
        return Connection(self._wired, controller_url(url))


class _WiredSession(PendingSession):
    """Of a client over the virtual wire."""

    def __init__(self, session: WireSession) -> None:
        super().__init__(None, None)
        self._wire_session = session

    def __call__(self, socket_path: str | None = None) -> Any:
        return self._wire_session


class RunEndingFaults:
    """``controller.process.served_cluster.NodeFaults``: any fault ends the run."""

    def __init__(self, owner: SimulatedController) -> None:
        self._owner = owner
        self.sentences: list[str] = []

    def fault(self, what: str, error: Exception) -> None:
        self._owner.world.violation(f"controller {self._owner.node_id}: fault in {what}: {error!r}")

    def alarm(self, what: str, sentence: str | None) -> None:
        if sentence is not None:
            self._owner.world.violation(f"controller {self._owner.node_id}: alarm of {what}: {sentence}")

    def report_checkpoint(self, end_offset: int, took_ms: float, error: StorageError | None) -> None:
        self._owner.world.checkpoint_taken(self._owner, error)

    def rotted(self, checkpoint: CheckpointId) -> None:
        """It is written anew."""

    def fatal(self, what: str, error: BaseException) -> None:
        self._owner.world.violation(f"controller {self._owner.node_id}: must stop: {what}: {error!r}")


async def _watch_digests(watch: ControllerDigestWatch) -> None:
    """Compare far more often than in production, whose interval depends on what digests cost in real time."""
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        if await watch.check():
            await watch.check(is_confirmed=True)


class _LoopClock:
    """``controller.engine.event_queue.Scheduler`` on the process's loop."""

    def __init__(self, owner: SimulatedController) -> None:
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
    """``controller.process.served_cluster.RunningQuorum``."""

    def __init__(self, node: QuorumNode) -> None:
        self.node = node

    def silence(self, peer: int) -> float | None:
        """Its sockets have no clock of their own here."""
        return None


class _SimulatedBackground:
    """Nothing is beside the loop: whoever works on the state does it at once."""

    def __init__(self) -> None:
        self.digests = DigestMemory()
        self.checkpoint_pace = self.digest_pace = Unpaced()

    def moved(self, end_offset: int) -> None:
        """It gives way to nobody."""


class _Chance:
    """``controller.decisions.random_source.RandomSource`` from a seed."""

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


def _image_of(reader: SnapshotReader) -> MetadataImage:
    return read_checkpoint(batches_in(reader.read()), reader.end_offset, reader.epoch)
