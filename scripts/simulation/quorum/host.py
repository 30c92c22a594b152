"""One simulated process: the production node on a virtual clock, wire and disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from quorate.metadata_log.disk import DiskJob, drain
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import LogConfig
from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import DiskFailed, FatalFault, ProtocolError
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.node import QuorumNode
from quorate.quorum.storage.disk_queue import DiskGroup
from quorate.quorum.storage.storage import NodeStorage
from quorate.quorum.transport.frames import framed
from quorate.quorum.transport.silence import SilenceWatch
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION, common_version
from quorate.scripts.simulation.machine.disk_trouble import DiskTrouble, ProcessEnded
from quorate.scripts.simulation.machine.durable_log import DurableLog
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from quorate.scripts.simulation.quorum.damaged_frames import DamagedFrame
from quorate.scripts.simulation.quorum.link import SimulatedLink
from quorate.scripts.simulation.quorum.network import ShownHello
from quorate.scripts.simulation.quorum.state_machine import StateMachine

if TYPE_CHECKING:
    from quorate.scripts.simulation.quorum.world import World

#: Virtual seconds.
_STALL_MEAN = 0.3

#: A process that ends while it opens its disk ends at the latest in this call of it, if it makes so many.
_RECOVERY_CALLS_MAX = 60
#: What a ping carries.
_NOTHING = b""

DIRECTORY = "node/__cluster_metadata-0"


class SimulatedNode:
    """A node's disk, and its process while it runs. Implements the network's endpoint and the quorum's ``Host``."""

    def __init__(self, world: World, config: QuorumConfig) -> None:
        self.world = world
        self.config = config
        self.node_id = config.node_id
        self.directory_id = config.directory_id
        self.disk = MemoryDisk(Random(world.rng.getrandbits(64)))
        self.trouble = DiskTrouble(Random(world.rng.getrandbits(64)))
        self.disk.on_call = self.trouble
        #: What the disk would keep in a power cut.
        self.durable = DurableLog(self.disk, DIRECTORY)
        #: The process; None while the node is down.
        self.node: QuorumNode | None = None
        self.storage: NodeStorage | None = None
        self.machine: StateMachine | None = None
        #: Number of this process; events of earlier ones are void.
        self.incarnation = 0
        self.is_frozen = False
        #: How far the wall clock is off, as drawn; it jumps.
        self.clock_ahead_ms = 0
        self.set_clock()
        self.is_disk_failure_expected = False
        self._deferred: list[tuple[bool, Callable[..., None], tuple[Any, ...]]] = []
        self._connections: dict[int, SimulatedLink] = {}
        self._is_pump_scheduled = False
        self._wake_at = math.inf
        self._rate = 1.0
        #: How many times slower the disk is at the moment.
        self.disk_slowness = 1.0
        #: Whether calls to the disk do not return for the time being.
        self.is_disk_hung = False
        #: Whether those of checkpoints do not either.
        self.is_bulk_hung = True
        self._hung: list[Callable[[], None]] = []

    # --- life ----------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return self.node is not None

    @property
    def hello(self) -> ShownHello:
        assert self.node is not None
        return ShownHello(self.directory_id, self.node.is_voter, self.config.newest_version)

    def start(self) -> None:
        """Start the process over what the disk holds."""
        world, options = self.world, self.world.options
        self.incarnation += 1
        world.network.booted(self.node_id)
        self._connections = {}
        self._deferred = []
        self.is_frozen = False
        self._is_pump_scheduled = False
        self._wake_at = math.inf
        self._rate = 1.0 + world.rng.uniform(-options.drift, options.drift)
        if options.older_share:
            is_older = world.rng.random() < options.older_share
            self.config = replace(self.config, newest_version=NEWEST_VERSION - is_older)
        if not world.is_healed and world.rng.random() < options.recovery_crash_share:
            self.trouble.end_soon(world.rng.randint(0, _RECOVERY_CALLS_MAX))
        if self.node_id in world.rotten:
            # It may be set aside now.
            world.checks.losing(self)
        log_config = LogConfig(segment_bytes=options.segment_bytes, resident_bytes=options.resident_bytes)
        try:
            self.storage = NodeStorage.open(self.disk, DIRECTORY, self.config, log_config)
        except OSError:
            if not self.is_disk_failure_expected:
                raise
            world.crashed_at_start(self, is_power_cut=False)
            return
        except ProcessEnded:
            world.crashed_at_start(self, is_power_cut=world.rng.random() < options.power_cut_share)
            return
        self.trouble.spare()
        world.opened(self)
        self._watch = SilenceWatch(self.config.timing, self.now())
        self._look_later()
        self._begin(self.storage)

    def _begin(self, storage: NodeStorage) -> None:
        """Make the parts of the process over its opened directory."""
        self.machine = StateMachine(self)
        self.node = QuorumNode(self.config, storage, self, self.machine, Random(self.world.rng.getrandbits(64)))
        self.node.start()

    def set_clock(self) -> None:
        """The wall clock jumps, forwards or backwards."""
        error = self.world.options.clock_error_ms
        if error:
            self.clock_ahead_ms = self.world.rng.randint(-error, error)

    def stop(self) -> None:
        """The process is gone at once; the disk is as the caller left it."""
        self.node = None
        self.incarnation += 1

    def hang_up(self, *, is_silent: bool) -> None:
        """Its connections other than those to its peers break; here there are none."""

    def freeze(self) -> None:
        """SIGSTOP: nothing happens until ``thaw``."""
        self.is_frozen = True

    def thaw(self) -> None:
        """SIGCONT: what waited in the sockets is read; a timer may come first."""
        if not self.is_frozen:
            return
        self.is_frozen = False
        waiting, self._deferred = self._deferred, []
        pumps = [item for item in waiting if item[0]]
        others = [item for item in waiting if not item[0]]
        first_pumps = self.world.rng.random() < 0.5
        for _, action, arguments in pumps + others if first_pumps else others + pumps:
            self.world.scheduler.after(0.0, self._run, self.incarnation, action, arguments)

    def hang_disk(self, *, is_bulk_hung: bool = True) -> None:
        """No call to the disk returns until ``wake_disk``, but for those that the loop makes itself.

        With ``is_bulk_hung`` false checkpoints are written all the same.
        """
        self.is_disk_hung = True
        self.is_bulk_hung = is_bulk_hung

    def wake_disk(self) -> None:
        """Let the call that hangs in the disk return."""
        self.is_disk_hung = False
        waiting, self._hung = self._hung, []
        for resume in waiting:
            resume()

    # --- Host ----------------------------------------------------------------------------------------

    def now(self) -> float:
        return 100.0 + self.world.scheduler.now * self._rate

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(self.world.scheduler.now * 1000) + self.clock_ahead_ms

    def send(self, peer: int, channel: Channel, payload: bytes) -> None:
        link = self._connections.get(peer)
        if link is not None and self.world.network.is_open(self.node_id, peer, link.number):
            link.pulse.has_sent = True
            self.world.network.send(self.node_id, peer, channel, payload)

    def run_group(self, group: DiskGroup) -> bool:
        world, options = self.world, self.world.options
        if (
            not group.is_short
            or self.is_disk_hung
            or self.disk_slowness > 1.0
            or world.rng.random() >= options.inline_share
        ):
            self._schedule_disk(group, group.run())
            return False
        drain(group)
        if not world.is_healed and world.rng.random() < options.stall_share:
            # A disk that hangs stops the process that waits for it.
            self.freeze()
            world.scheduler.after(world.rng.expovariate(1.0 / _STALL_MEAN), self.thaw)
        return True

    def run_bulk_job(self, job: DiskJob) -> None:
        self._schedule_bulk(job.run())

    def request_pump(self) -> None:
        if not self._is_pump_scheduled:
            self._is_pump_scheduled = True
            self._schedule(self.world.rng.uniform(0.0, 0.0002), self._pump, is_pump=True)

    def next_turn(self, action: Callable[[], None]) -> None:
        self._schedule(self.world.rng.uniform(0.0, 0.0002), action)

    def fatal(self, error: BaseException) -> None:
        self.world.fatal(self, error)

    # --- endpoint ------------------------------------------------------------------------------------

    def knows(self, connection: int, peer: int) -> bool:
        link = self._connections.get(peer)
        return link is not None and link.number == connection

    def deliver(self, connection: int, peer: int, payload: bytes) -> None:
        self._enter(self._receive, connection, peer, payload)

    def unread(self, connection: int) -> int:
        """Bytes that arrived on a connection while the process was frozen."""
        received = (arguments for _, action, arguments in self._deferred if action == self._receive)
        return sum(len(payload) for number, _, payload in received if number == connection)

    def peer_connected(self, connection: int, peer: int, hello: ShownHello) -> None:
        self._enter(self._connected, connection, peer, hello)

    def peer_disconnected(self, connection: int, peer: int) -> None:
        self._enter(self._disconnected, connection, peer)

    # --- events --------------------------------------------------------------------------------------

    def call(self, action: Callable[[QuorumNode], None]) -> None:
        """Let a client act on the node, if it runs."""
        if self.node is not None and not self.is_frozen:
            action(self.node)
            self.world.after_event(self)

    def _enter(self, action: Callable[..., None], *arguments: Any) -> None:
        self._run(self.incarnation, action, arguments)

    def _schedule(self, delay: float, action: Callable[..., None], *arguments: Any, is_pump: bool = False) -> None:
        self.world.scheduler.after(delay, self._run, self.incarnation, action, arguments, is_pump)

    def _run(
        self, incarnation: int, action: Callable[..., None], arguments: tuple[Any, ...], is_pump: bool = False
    ) -> None:
        if incarnation != self.incarnation or self.node is None:
            return
        if self.is_frozen:
            self._deferred.append((is_pump, action, arguments))
            return
        action(*arguments)
        self.world.after_event(self)

    def _pump(self) -> None:
        self._is_pump_scheduled = False
        self._pump_now()

    def _timer(self, wake_at: float) -> None:
        if wake_at == self._wake_at:
            self._wake_at = math.inf
            self._pump_now()

    def _pump_now(self) -> None:
        assert self.node is not None
        due = self.node.pump()
        if due < self._wake_at and self.node is not None:
            self._wake_at = due
            self._schedule((due - self.now()) / self._rate + 1e-6, self._timer, due, is_pump=True)

    def _receive(self, connection: int, peer: int, payload: bytes) -> None:
        """Read what a connection brings, as production's does: what is no message ends it, and nothing else."""
        if not self.knows(connection, peer) or self.node is None:
            return
        link, is_damaged = self._connections[peer], isinstance(payload, DamagedFrame)
        link.pulse.has_read = True
        before = self._standing(self.node) if is_damaged else None
        try:
            for frame in link.frames.feed(payload if is_damaged else framed(payload)):
                if frame:
                    self.node.receive(peer, frame)
        except ProtocolError as error:
            if not is_damaged:
                self.world.violation(f"node {self.node_id} refuses what node {peer} sent: {error}")
            elif before != self._standing(self.node):
                self.world.violation(f"node {self.node_id} was changed by a frame that it refuses: {error}")
            self._hang_up_on(link)
        else:
            if isinstance(payload, DamagedFrame) and payload.is_nonsense:
                self.world.violation(f"node {self.node_id} goes on behind a frame of node {peer} that is no message")

    def _standing(self, node: QuorumNode) -> tuple[object, ...]:
        """The state that a message may change."""
        ends = (node.log_end_offset, node.high_watermark, node.applied_end)
        return node.epoch, node.leader_id, node.is_leader, node.is_voter, node._votes.staged_generation, *ends

    def _hang_up_on(self, link: SimulatedLink) -> None:
        self.world.network.close(self.node_id, link.peer)
        self._disconnected(link.number, link.peer)

    def _connected(self, connection: int, peer: int, hello: ShownHello) -> None:
        if not self.world.network.is_open(self.node_id, peer, connection) or self.node is None:
            return
        older = self._connections.get(peer)
        if older is not None:
            self._disconnected(older.number, peer)
        self._connections[peer] = SimulatedLink(connection, peer)
        version = common_version(self.config.newest_version, OLDEST_VERSION, hello.newest_version)
        assert version is not None
        self.node.connected(peer, hello.directory_id, is_voter=hello.is_voter, version=version)

    def _disconnected(self, connection: int, peer: int) -> None:
        if self.knows(connection, peer) and self.node is not None:
            del self._connections[peer]
            self.node.disconnected(peer)

    def _look_later(self) -> None:
        self._schedule((self._watch.next_look - self.now()) / self._rate, self._look)

    def _look(self) -> None:
        """Ping idle connections and close those that are silent or stuck, as production's transport does."""
        look = self._watch.look(self.now(), self._connections.values())
        for link in look.idle:
            self.send(link.peer, Channel.CONSENSUS, _NOTHING)
        for link in (*look.dead, *look.stuck):
            self._hang_up_on(link)
        self._look_later()

    # --- the disk threads -----------------------------------------------------------------------------

    def _schedule_disk(self, group: DiskGroup, steps: Iterator[None]) -> None:
        if self.is_disk_hung:
            incarnation = self.incarnation
            self._hung.append(lambda: self._schedule_disk(group, steps) if incarnation == self.incarnation else None)
            return
        world = self.world
        delay = world.rng.expovariate(1.0 / world.options.disk_delay_mean) * self.disk_slowness
        self._schedule(min(delay, 1.0), self._disk_step, group, steps)

    def _disk_step(self, group: DiskGroup, steps: Iterator[None]) -> None:
        assert self.node is not None
        try:
            next(steps)
        except StopIteration:
            self.node.disk_done(group)
        except OSError as error:
            self._disk_failed(error)
        else:
            self._schedule_disk(group, steps)

    def _schedule_bulk(self, steps: Iterator[None]) -> None:
        if self.is_disk_hung and self.is_bulk_hung:
            incarnation = self.incarnation
            self._hung.append(lambda: self._schedule_bulk(steps) if incarnation == self.incarnation else None)
            return
        delay = self.world.rng.expovariate(1.0 / self.world.options.disk_delay_mean) * self.disk_slowness
        self._schedule(min(delay, 1.0), self._bulk_step, steps)

    def _bulk_step(self, steps: Iterator[None]) -> None:
        assert self.node is not None
        try:
            next(steps)
        except StopIteration:
            self.node.bulk_done(None)
        except StorageError as error:
            self.node.bulk_done(error)
        except OSError as error:
            self._disk_failed(error)
        else:
            self._schedule_bulk(steps)

    def _disk_failed(self, error: OSError) -> None:
        assert self.node is not None
        if not self.is_disk_failure_expected:
            raise FatalFault(f"node {self.node_id}: {error}") from error
        self.node.fail(DiskFailed(error))
