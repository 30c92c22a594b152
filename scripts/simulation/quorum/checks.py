"""The properties that must hold after every event, and at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from quorate.metadata_log.batches.batch import BatchHeader, checked_header
from quorate.scripts.simulation.machine.durable_log import BatchFact, Held, fact_of
from quorate.scripts.simulation.quorum.memory_bounds import MemoryBounds

if TYPE_CHECKING:
    from quorate.scripts.simulation.quorum.host import SimulatedNode
    from quorate.scripts.simulation.quorum.world import World


#: Events between two looks at the memory of the node on which the last one happened.
_WEIGHED_EVERY: Final = 16


class Violation(Exception):
    """A promise was broken."""


class NotReached(Exception):
    """A directed scenario did not come to the situation that it is about: it shows nothing, for or against."""


class Checks:
    """The history of one run, and the invariants over it."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Leader of every epoch.
        self.leaders: dict[int, int] = {}
        #: What was committed, by end offset, and the digest of everything before it.
        self.history: dict[int, BatchFact] = {}
        self.digests: dict[int, bytes] = {0: b""}
        #: Acknowledged batches by end offset.
        self.acknowledged: dict[int, BatchFact] = {}
        #: Highest acknowledged end offset.
        self.acknowledged_end = 0
        #: Times of committed batches, by end offset.
        self.times: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._memory = MemoryBounds(world)
        self._events = 0
        #: What nodes held when they were wiped or their disks rotted.
        self._lost: dict[int, list[Held]] = {}

    # --- events --------------------------------------------------------------------------------------

    def applied(self, owner: SimulatedNode, header: BatchHeader, digest: bytes) -> None:
        """A node applied a committed batch."""
        fact = fact_of(header)
        known = self.history.setdefault(header.end_offset, fact)
        if known != fact:
            self._world.violation(
                f"committed batch ending at {header.end_offset} is {fact} on node {owner.node_id}, was {known}"
            )
        if header.timestamp < self.times.get(header.base_offset, 0):
            self._world.violation(f"the committed batch at {header.base_offset} is earlier than the one before it")
        self.times[header.end_offset] = header.timestamp
        if self.digests.setdefault(header.end_offset, digest) != digest:
            self._world.violation(f"state at {header.end_offset} on node {owner.node_id} is not the others'")
        machine = owner.machine
        assert machine is not None
        if machine.pending.pop(header.end_offset, None) is not None and header.epoch == machine.leading_epoch:
            self._acknowledge(header.end_offset, fact)

    def loaded(self, owner: SimulatedNode, end_offset: int, epoch: int, digest: bytes) -> None:
        """A node starts from a checkpoint."""
        self._world.checkpoints_installed += 1
        if self.digests.get(end_offset) != digest or self.history[end_offset].epoch != epoch:
            self._world.violation(f"node {owner.node_id} loaded a state at {end_offset} that is not the others'")
        machine = owner.machine
        if machine is not None:
            machine.pending = {}

    def announced(self, owner: SimulatedNode, leader_id: int | None, epoch: int) -> None:
        """A node told its program who leads."""
        if leader_id is not None:
            self._leads(epoch, leader_id)

    def after_event(self, owner: SimulatedNode) -> None:
        """Something happened on a node."""
        node = owner.node
        if node is None:
            return
        epoch = node.epoch
        if epoch < self._epochs.get(owner.node_id, 0):
            self._world.violation(f"the epoch of node {owner.node_id} fell to {epoch}")
        self._epochs[owner.node_id] = epoch
        if node.is_leader:
            self._leads(epoch, owner.node_id)
        self._events += 1
        if self._events % _WEIGHED_EVERY == 0:
            self._memory.weigh(owner, node)

    def restarted(self, owner: SimulatedNode) -> None:
        """A process started: what lived in the memory of the last one is gone."""
        self._epochs.pop(owner.node_id, None)

    def losing(self, owner: SimulatedNode) -> None:
        """A node is about to lose what its disk holds, or a part of it."""
        self._lost.setdefault(owner.node_id, []).append(owner.durable.held())

    def read_confirmed(self, owner: SimulatedNode, offset: int, acknowledged_end: int) -> None:
        """A read that began when ``acknowledged_end`` was acknowledged may see the state at ``offset``."""
        if offset < acknowledged_end:
            self._world.violation(
                f"node {owner.node_id} confirmed a read at {offset}; {acknowledged_end} was acknowledged before"
            )

    # --- the end -------------------------------------------------------------------------------------

    def all_equal(self) -> None:
        """All disks hold the same log: what was committed, everything acknowledged in it, and nothing else.

        A node serves from memory: that must say what its disk does.
        """
        committed = self.history | self.acknowledged
        for node in self._world.nodes.values():
            log = node.durable.batches()
            start = self._start_of(node, log)
            for end in sorted(log.keys() | committed.keys()):
                if end > start and log.get(end) != committed.get(end):
                    was = "acknowledged" if end in self.acknowledged else "committed"
                    said = f"{log.get(end)} up to {end}; {was} was {committed.get(end)}"
                    self._world.violation(f"the disk of node {node.node_id} has {said}")
            self._compare_memory(node, log)
            self._count_handles(node)

    def _start_of(self, node: SimulatedNode, log: dict[int, BatchFact]) -> int:
        """The offset at which a disk's log may begin: everything before is in a whole checkpoint of a state that was
        committed.
        """
        checkpoints = node.durable.checkpoints
        # Without a batch the log begins with the newest checkpoint; an older one may still lie beside it.
        newest = checkpoints[-1].end_offset if checkpoints else 0
        begin = min((fact.base_offset for fact in log.values()), default=newest)
        for checkpoint in checkpoints:
            known = self.history.get(checkpoint.end_offset)
            if known is None or known.epoch != checkpoint.epoch:
                self._world.violation(f"node {node.node_id} has a checkpoint at {checkpoint} that nobody committed")
            if checkpoint.end_offset >= begin:
                return checkpoint.end_offset
        if begin:
            self._world.violation(f"the log on the disk of node {node.node_id} begins at {begin}, with no checkpoint")
        return begin

    def _compare_memory(self, node: SimulatedNode, on_disk: dict[int, BatchFact]) -> None:
        assert node.storage is not None
        log = node.storage.log
        for index in range(log.entry_count):
            end, fact = log.entry(index).end_offset, fact_of(checked_header(log.read(index)))
            if on_disk.get(end) != fact:
                self._world.violation(f"node {node.node_id} serves {fact}; its disk has {on_disk.get(end)}")

    def _count_handles(self, node: SimulatedNode) -> None:
        """A segment may be open for reading and for writing; any other file once, and none that is gone."""
        there = set(node.disk.paths())
        for path, count in Counter(node.disk.open_handles).items():
            if count > (2 if path.endswith(".log") else 1) or path not in there:
                self._world.violation(f"node {node.node_id} has {count} handles open on {path}")

    # --- inside --------------------------------------------------------------------------------------

    def _leads(self, epoch: int, node_id: int) -> None:
        known = self.leaders.setdefault(epoch, node_id)
        if known != node_id:
            self._world.violation(f"nodes {known} and {node_id} lead epoch {epoch}")

    def _acknowledge(self, end_offset: int, fact: BatchFact) -> None:
        holders = [node.node_id for node in self._world.nodes.values() if self._held(node, end_offset, fact)]
        if 2 * len(holders) <= len(self._world.nodes):
            self._world.violation(f"the batch ending at {end_offset} was acknowledged, durable only on {holders}")
        self.acknowledged[end_offset] = fact
        self.acknowledged_end = max(self.acknowledged_end, end_offset)

    def _held(self, node: SimulatedNode, end_offset: int, fact: BatchFact) -> bool:
        """Whether a node's disk holds a batch, its process running or not; or held it and lost it.

        An acknowledgement may be on its way while the disk that it speaks of is wiped. What it stands for stays true:
        until the node has caught up it does not vote, so no majority can form without another holder.
        """
        if node.durable.holds(end_offset, fact):
            return True
        is_excused = node.node_id in self._world.amnesiac or node.node_id in self._world.rotten
        lost = self._lost.get(node.node_id, []) if is_excused else []
        return any(held.holds(end_offset, fact) for held in lost)
