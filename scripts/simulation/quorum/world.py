"""One run: a cluster, its clients, its faults, and the end where everything heals and must converge."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from random import Random

from quorate.controller.process.quorum_parts import default_quorum_config
from quorate.metadata_log.batches.batch import HEADER_BYTES, build_batch
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.errors import ApiError, NoRoom, StorageError
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.config import QuorumConfig, QuorumLimits, VoterAddress
from quorate.quorum.errors import DiskFailed, NotLeader
from quorate.quorum.node import QuorumNode
from quorate.scripts.simulation.machine.scheduler import VirtualScheduler
from quorate.scripts.simulation.quorum.checks import Checks, Violation
from quorate.scripts.simulation.quorum.host import DIRECTORY, SimulatedNode
from quorate.scripts.simulation.quorum.network import SimulatedNetwork
from quorate.scripts.simulation.quorum.options import Options

#: Virtual seconds between two attempts to make missing connections.
_DIAL_INTERVAL = 0.04
#: Writes that must be acknowledged after everything healed.
_HEALED_WRITES = 3
#: Share of the writes that are large, as long as there are to be any.
_LARGE_SHARE = 0.05
#: What a batch of one write has beside its filler, and the most that this may be.
_NUMBER_BYTES = 8
LARGEST_FILLER_BYTES = BATCH_BYTES_MAX - HEADER_BYTES - _NUMBER_BYTES


class World:
    """All nodes of one cluster in virtual time."""

    def __init__(self, seed: int, options: Options) -> None:
        self.seed = seed
        self.options = options
        self.rng = Random(seed * 2 + 1)
        self.scheduler = VirtualScheduler()
        self.checks = self._make_checks()
        ids = [3000 + k for k in range(options.voters)]
        voters = tuple(VoterAddress(node_id, "127.0.0.1", 9000, self._new_directory_id()) for node_id in ids)
        limits = QuorumLimits(
            append_bytes=options.append_bytes,
            chunk_bytes=options.chunk_bytes,
            apply_batches=options.apply_batches,
            inflight_bytes=options.inflight_bytes,
            pass_bytes=options.pass_bytes,
            unwritten_bytes=options.unwritten_bytes,
        )
        self.nodes: dict[int, SimulatedNode] = {}
        for voter in voters:
            config = default_quorum_config("simulated", voter.node_id, voter.directory_id, voters)
            retention = replace(config.retention, max_retention_bytes=options.retention_bytes)
            config = replace(config, limits=limits, retention=retention)
            self.nodes[voter.node_id] = self._make_node(config)
        self.network = SimulatedNetwork(self.scheduler, self.rng, options, self.nodes)
        #: Nodes that lost their memory and do not vote yet.
        self.amnesiac: set[int] = set()
        #: Nodes on whose disks something rotted since they were started.
        self.rotten: set[int] = set()
        self.is_damage_expected = False
        self.confirmed_reads = 0
        self.checkpoints_installed = 0
        self._payloads = 0
        #: Bytes of the largest batch that a client ever wrote, whatever became of it.
        self.largest_batch = 0
        self._large_writes_left = options.large_writes
        self._violation: str | None = None

    def _make_checks(self) -> Checks:
        return Checks(self)

    def _make_node(self, config: QuorumConfig) -> SimulatedNode:
        return SimulatedNode(self, config)

    # --- building blocks -----------------------------------------------------------------------------

    def format(self) -> None:
        """Lay out the founding directories and start every node."""
        for node in self.nodes.values():
            node.disk.put(f"{DIRECTORY}/{QUORUM_STATE_NAME}", encode_quorum_state(QuorumState(0)))
        for node in self.nodes.values():
            node.start()
        self._dial()

    def every(self, rate: float, action: Callable[[], None]) -> None:
        """Call ``action`` at random times, ``rate`` times a second on average, until the phase ends."""
        if rate <= 0:
            return
        phase = self._phase

        def again() -> None:
            if self._phase != phase:
                return
            action()
            self.scheduler.after(self.rng.expovariate(rate), again)

        self.scheduler.after(self.rng.expovariate(rate), again)

    #: Whether all faults have ended.
    is_healed = False
    #: Number of the phase: of faults everywhere, then perhaps of faults of a minority, then of none.
    _phase = 0

    def run_events(self, count: int) -> None:
        """Handle events until ``count`` have been handled since the start."""
        while self.scheduler.count < count and self.scheduler.step():
            self._raise_violation()

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Let virtual time pass until ``condition`` holds; False if it never did within ``seconds``."""
        end = self.scheduler.now + seconds
        while not condition():
            if self.scheduler.now > end:
                return False
            self.scheduler.step()
            self._raise_violation()
        return True

    def violation(self, message: str) -> None:
        """A promise was broken: the run ends with the event at hand."""
        if self._violation is None:
            self._violation = message

    def _raise_violation(self) -> None:
        if self._violation is not None:
            raise Violation(f"t={self.scheduler.now:.4f}s event {self.scheduler.count}: {self._violation}")

    def _new_directory_id(self) -> bytes:
        return self.rng.randbytes(16)

    def _dial(self) -> None:
        self.network.dial_all()
        self.scheduler.after(_DIAL_INTERVAL, self._dial)

    # --- clients -------------------------------------------------------------------------------------

    def leaders(self) -> list[SimulatedNode]:
        """Every node that thinks it leads and was announced."""
        return [
            node
            for node in self.nodes.values()
            if node.node is not None
            and not node.is_frozen
            and node.node.is_leader
            and node.machine is not None
            and node.machine.leading_epoch == node.node.epoch
        ]

    def write(self, target: SimulatedNode | None = None, filler: bytes | None = None) -> int | None:
        """Append to a leader; the end offset, None when nobody took it. ``filler``: behind the number of the write."""
        leaders = self.leaders() if target is None else [target]
        if not leaders:
            return None
        owner = self.rng.choice(leaders)
        assert owner.node is not None
        assert owner.machine is not None
        node, machine = owner.node, owner.machine
        self._payloads += 1
        count = self.rng.choice((1, 1, 2, 5))
        body = self._payloads.to_bytes(_NUMBER_BYTES, "big") + (self._filler() if filler is None else filler)
        end: int | None = None
        try:
            time_ms = node._delivery.next_time_ms()
        except (OSError, StorageError) as error:
            # It looks at the last batch, which may lie on the disk only.
            node.fail(DiskFailed(error))
            return None
        try:
            batch = build_batch(body, count, time_ms)
            self.largest_batch = max(self.largest_batch, len(batch))
            end = node.append(node.epoch, batch, count) + 1
        except ApiError:
            return None
        machine.pending[end] = self._payloads
        self.after_event(owner)
        return end

    def _filler(self) -> bytes:
        rng = self.rng
        if self._large_writes_left and rng.random() < _LARGE_SHARE:
            self._large_writes_left -= 1
            size = LARGEST_FILLER_BYTES if rng.random() < 0.2 else int(LARGEST_FILLER_BYTES * 10 ** rng.uniform(-2, 0))
            return bytes([rng.randrange(256)]) * size
        return rng.randbytes(rng.randint(1, self.options.payload_bytes_max))

    def read(self, target: SimulatedNode | None = None) -> None:
        """A linearizable read on a node that thinks it leads."""
        leaders = [node for node in self.nodes.values() if node.node is not None and node.node.is_leader]
        leaders = [node for node in leaders if not node.is_frozen] if target is None else [target]
        if not leaders:
            return
        owner = self.rng.choice(leaders)
        assert owner.node is not None
        before = self.checks.acknowledged_end

        def done(outcome: int | NotLeader) -> None:
            if isinstance(outcome, int):
                self.confirmed_reads += 1
                self.checks.read_confirmed(owner, outcome, before)

        try:
            owner.node.read_barrier(done)
        except NotLeader:
            return

    def take_checkpoint(self, target: SimulatedNode | None = None) -> None:
        """Let a node write a checkpoint of its state."""
        owner = self.rng.choice(list(self.nodes.values())) if target is None else target
        if owner.node is None or owner.machine is None or owner.is_frozen:
            return
        end_offset = owner.machine.applied_end
        if end_offset > owner.node.status().log_start_offset:
            content = owner.machine.checkpoint_content()
            digest = owner.machine.digest
            written = CheckpointContent(content, lambda: CheckpointManifest({}, digest))
            owner.node.write_checkpoint(end_offset, written, lambda error: self.checkpoint_taken(owner, error))

    def checkpoint_taken(self, owner: SimulatedNode, error: StorageError | None) -> None:
        """A node wrote a checkpoint, or could not: for want of room, or as what it read had rotted."""
        # Told by what failed, too, not only by when: a job that met a failure may end when all faults have.
        drawn = owner.trouble.last_error
        is_drawn = drawn is not None and error is not None and error.__cause__ is drawn
        had_no_room = isinstance(error, NoRoom) and (owner.is_disk_failure_expected or is_drawn)
        is_expected = self.is_damage_expected or had_no_room
        if error is not None and not is_expected:
            self.violation(f"a checkpoint was not written: {error}")

    # --- what nodes report ---------------------------------------------------------------------------

    def after_event(self, owner: SimulatedNode) -> None:
        """Something happened on a node."""
        self.checks.after_event(owner)
        if owner.node_id in self.amnesiac and owner.node is not None and owner.node.is_voter:
            self.amnesiac.discard(owner.node_id)

    def opened(self, owner: SimulatedNode) -> None:
        """A node opened its disk."""
        assert owner.storage is not None
        self.checks.restarted(owner)
        self.rotten.discard(owner.node_id)
        if owner.storage.damage and not self.is_damage_expected:
            self.violation(f"node {owner.node_id} found damage that nobody did: {owner.storage.damage}")
        if not owner.storage.votes.has_file:
            # Perhaps set aside by a process that ended before it had told.
            self.amnesiac.add(owner.node_id)

    def fatal(self, owner: SimulatedNode, error: BaseException) -> None:
        """A node must stop."""
        is_expected = owner.is_disk_failure_expected and isinstance(error, DiskFailed | OSError)
        if is_expected or (owner.node_id in self.rotten and isinstance(error, DiskFailed | StorageError)):
            self.scheduler.after(0.0, self.crash, owner, False)
        else:
            self.violation(f"node {owner.node_id} stopped: {type(error).__name__}: {error}")

    # --- faults --------------------------------------------------------------------------------------

    def crash(self, owner: SimulatedNode, is_power_cut: bool) -> None:
        """End a node's process; with a power cut, unsynced data is lost."""
        if owner.node is None:
            return
        owner.stop()
        # What rotted above the mark looks like what was never synced, and a power cut leaves an old mark.
        is_power_cut = is_power_cut and owner.node_id not in self.rotten
        if is_power_cut:
            owner.disk.power_cut(self.options.crash_policy)
        else:
            owner.disk.kill()
        self.cut_off(owner, is_silent=is_power_cut and self.rng.random() < 0.5)
        self._restart_later(owner)

    def cut_off(self, owner: SimulatedNode, *, is_silent: bool) -> None:
        """A process has ended: its connections break, unless its host went silent with it."""
        self.network.drop_node(owner.node_id, is_silent=is_silent)
        owner.hang_up(is_silent=is_silent)

    def crashed_at_start(self, owner: SimulatedNode, *, is_power_cut: bool) -> None:
        """A process ended while it opened its disk."""
        if is_power_cut and owner.node_id not in self.rotten:
            owner.disk.power_cut(self.options.crash_policy)
        else:
            owner.disk.kill()
        self._restart_later(owner)

    def _restart_later(self, owner: SimulatedNode) -> None:
        downtime = 0.01 if self.is_healed else self.rng.expovariate(1.0 / self.options.downtime_mean)
        self.scheduler.after(downtime, self.restart, owner)

    def restart(self, owner: SimulatedNode) -> None:
        """Start a node that is down."""
        if owner.node is None:
            owner.start()

    def wipe(self, owner: SimulatedNode) -> None:
        """A node comes back with an empty disk and a new directory, as a non-voter."""
        if owner.node is not None:
            owner.stop()
            self.cut_off(owner, is_silent=False)
        self.checks.losing(owner)
        self.rotten.discard(owner.node_id)
        owner.disk.wipe()
        owner.disk.put(f"{DIRECTORY}/formatted", b"")
        owner.storage = None
        owner.directory_id = self._new_directory_id()
        owner.config = replace(owner.config, directory_id=owner.directory_id)
        self.amnesiac.add(owner.node_id)

    # --- the end -------------------------------------------------------------------------------------

    def heal(self) -> None:
        """End all faults."""
        self.is_healed = True
        self.network.cut.clear()
        self.options = replace(
            self.options,
            loss=0.0,
            duplication=0.0,
            damage=0.0,
            disk_delay_mean=min(self.options.disk_delay_mean, 0.001),
        )
        self.network.options = self.options
        self.recover(self.nodes.values())

    def recover(self, nodes: Collection[SimulatedNode]) -> None:
        """End the phase, and everything that is wrong with some nodes and their connections to each other."""
        self._phase += 1
        ids = [node.node_id for node in nodes]
        self.network.cut.difference_update([(one, other) for one in ids for other in ids])
        for node in nodes:
            node.disk_slowness = 1.0
            node.wake_disk()
            node.disk.spare_syncs()
            node.trouble.spare()
            node.is_disk_failure_expected = False
            node.thaw()
            if node.node_id in self.rotten:
                self.crash(node, False)
            self.restart(node)

    def converge(self) -> None:
        """Demand progress: new writes acknowledged, every voter with the same log, within bounded virtual time."""
        before = len(self.checks.acknowledged)
        self.write_until(before + _HEALED_WRITES)
        wanted = lambda: len(self.checks.acknowledged) >= before + _HEALED_WRITES and self._is_converged()  # noqa: E731
        if not self.run_until(wanted, self.options.heal_seconds):
            raise Violation(f"no convergence {self.options.heal_seconds} s after everything healed:\n{self.describe()}")
        self.checks.all_equal()
        self._raise_violation()

    def write_until(self, count: int) -> None:
        """Write again and again until so many writes are acknowledged."""
        if len(self.checks.acknowledged) < count:
            self.write()
            self.scheduler.after(0.05, self.write_until, count)

    def _is_converged(self) -> bool:
        leaders = self.leaders()
        if len(leaders) != 1:
            return False
        leader = leaders[0].node
        assert leader is not None
        if not all(_is_caught_up(node.node, leader) for node in self.nodes.values()):
            return False
        end_offset = leader.log_end_offset
        last = self.checks.history[end_offset]
        return all(node.durable.holds(end_offset, last) for node in self.nodes.values())

    def describe(self) -> str:
        """The state of every node, for a failing run."""
        return "\n".join(
            f"  {node.node_id}: " + ("down" if node.node is None else str(node.node.status()))
            for node in self.nodes.values()
        )


def _is_caught_up(node: QuorumNode | None, leader: QuorumNode) -> bool:
    return (
        node is not None
        and node.is_voter
        and node.epoch == leader.epoch
        and node.leader_id == leader.node_id
        and node.log_end_offset == leader.log_end_offset
        and node.applied_end == leader.log_end_offset
    )
