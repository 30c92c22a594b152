"""What must hold after every event, and at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metadata_log.batch import BatchHeader
from metadata_log.segment_log import MetadataLog

if TYPE_CHECKING:
    from scripts.simulation.host import SimulatedNode
    from scripts.simulation.world import World


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
        #: (base offset, epoch, crc) of what was committed, by end offset, and the digest of everything before it.
        self.history: dict[int, tuple[int, int, int]] = {}
        self.digests: dict[int, bytes] = {0: b""}
        #: CRC of acknowledged batches by end offset.
        self.acknowledged: dict[int, int] = {}
        #: Highest acknowledged end offset.
        self.acknowledged_end = 0
        self._epochs: dict[int, int] = {}
        #: What wiped nodes held when they lost it.
        self._lost: dict[int, MetadataLog] = {}

    # --- events --------------------------------------------------------------------------------------

    def applied(self, owner: SimulatedNode, header: BatchHeader, digest: bytes) -> None:
        """A node applied a committed batch."""
        fact = (header.base_offset, header.epoch, header.crc)
        known = self.history.setdefault(header.end_offset, fact)
        if known != fact:
            self._world.violation(
                f"committed batch ending at {header.end_offset} is {fact} on node {owner.node_id}, was {known}"
            )
        if self.digests.setdefault(header.end_offset, digest) != digest:
            self._world.violation(f"state at {header.end_offset} on node {owner.node_id} is not the others'")
        machine = owner.machine
        assert machine is not None
        if machine.pending.pop(header.end_offset, None) is not None and header.epoch == machine.leading_epoch:
            self._acknowledge(header)

    def loaded(self, owner: SimulatedNode, end_offset: int, epoch: int, digest: bytes) -> None:
        """A node starts from a checkpoint."""
        self._world.checkpoints_installed += 1
        if self.digests.get(end_offset) != digest or self.history[end_offset][1] != epoch:
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

    def restarted(self, owner: SimulatedNode) -> None:
        """A process started: what lived in the memory of the last one is gone."""
        self._epochs.pop(owner.node_id, None)

    def wiped(self, owner: SimulatedNode) -> None:
        """A node lost its disk."""
        if owner.storage is not None:
            self._lost[owner.node_id] = owner.storage.log

    def read_confirmed(self, owner: SimulatedNode, offset: int, acknowledged_end: int) -> None:
        """A read that began when ``acknowledged_end`` was acknowledged may see the state at ``offset``."""
        if offset < acknowledged_end:
            self._world.violation(
                f"node {owner.node_id} confirmed a read at {offset}; {acknowledged_end} was acknowledged before"
            )

    # --- the end -------------------------------------------------------------------------------------

    def all_equal(self) -> None:
        """All voters hold the same log, with everything acknowledged in it."""
        nodes = [node for node in self._world.nodes.values() if node.node is not None]
        logs = [self._log_of(node) for node in nodes]
        start = max(min(log, default=0) for log in logs)
        first = {end: fact for end, fact in logs[0].items() if end > start}
        for node, log in zip(nodes[1:], logs[1:], strict=True):
            if {end: fact for end, fact in log.items() if end > start} != first:
                self._world.violation(f"the log of node {node.node_id} is not that of node {nodes[0].node_id}")
        for end, crc in self.acknowledged.items():
            if self.history[end][2] != crc:
                self._world.violation(f"the acknowledged batch ending at {end} is not in the history")

    # --- inside --------------------------------------------------------------------------------------

    def _leads(self, epoch: int, node_id: int) -> None:
        known = self.leaders.setdefault(epoch, node_id)
        if known != node_id:
            self._world.violation(f"nodes {known} and {node_id} lead epoch {epoch}")

    def _acknowledge(self, header: BatchHeader) -> None:
        holders = [
            node.node_id for node in self._world.nodes.values() if self._held(node, header.end_offset, header.epoch)
        ]
        if 2 * len(holders) <= len(self._world.nodes):
            self._world.violation(
                f"the batch ending at {header.end_offset} was acknowledged, durable only on {holders}"
            )
        self.acknowledged[header.end_offset] = header.crc
        self.acknowledged_end = max(self.acknowledged_end, header.end_offset)

    def _held(self, node: SimulatedNode, end_offset: int, epoch: int) -> bool:
        """Whether a node's disk holds a batch, its process running or not; or held it and was wiped.

        An acknowledgement may be on its way while the disk that it speaks of is wiped. What it stands for stays true:
        until the node has caught up it does not vote, so no majority can form without another holder.
        """
        if node.storage is not None and _durably_holds(node.storage.log, end_offset, epoch):
            return True
        is_amnesiac = node.node_id in self._world.amnesiac and node.node_id in self._lost
        return is_amnesiac and _durably_holds(self._lost[node.node_id], end_offset, epoch)

    def _log_of(self, node: SimulatedNode) -> dict[int, tuple[int, int, bytes]]:
        assert node.storage is not None
        log = node.storage.log
        found = {}
        for index in range(log.entry_count):
            ref = log.entry(index)
            found[ref.end_offset] = (ref.base_offset, ref.epoch, log.read(index))
        found[log.start_offset] = (0, 0, b"")
        return found


def _durably_holds(log: MetadataLog, end_offset: int, epoch: int) -> bool:
    return log.durable_end >= end_offset and (log.start_offset >= end_offset or log.holds(end_offset, epoch))
