"""A node's memory, weighed object by object, against the bounds that production promises.

Nothing of it is production's own count: the bytes are added up anew. That costs as much as there are objects, so it is
not done behind every event (``checks``): what waits does so for many of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quorate.metadata_log.checkpoints.checkpoint_transfer import ReceiveChunkJob
from quorate.metadata_log.log.flush import DiskStep, WriteBatches
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.node import QuorumNode

if TYPE_CHECKING:
    from quorate.scripts.simulation.quorum.host import SimulatedNode
    from quorate.scripts.simulation.quorum.world import World

#: Batches that a leader may be given in one turn, before it looks at what waits for its disk.
_OF_ONE_TURN: Final = 4
#: Messages that wait for the vote to be durable, as ``quorum.messages.outbox`` promises; and those of the turn at hand.
_HELD_MESSAGES_MAX: Final = 1_000
_MESSAGES_OF_ONE_TURN: Final = 100
#: Bytes of heartbeats, rounds of reads, votes and whatever else is small, on one connection until it is given up.
_SMALL_TALK_BYTES: Final = 64 * 1024


class MemoryBounds:
    """Weighs the nodes of one run."""

    def __init__(self, world: World) -> None:
        self._world = world

    def weigh(self, owner: SimulatedNode, node: QuorumNode) -> None:
        """Look at all that a node holds."""
        self._weigh_log(owner, node, node._log)
        self._weigh_messages(owner, node)
        self._weigh_checkpoints(owner, node)
        self._weigh_connections(owner, node)

    def _weigh_log(self, owner: SimulatedNode, node: QuorumNode, log: MetadataLog) -> None:
        """Batches that wait for the disk; and those that are in memory beside them, to be read again."""
        limits = owner.config.limits
        waiting = [*_chunks(log._staged), *_chunks(log._job.steps if log._job is not None else ())]
        unwritten, largest = sum(waiting), max(waiting, default=0)
        self._demand(
            owner,
            "bytes that wait for its disk",
            unwritten,
            limits.unwritten_bytes + _message(limits.append_bytes, largest),
        )
        resident = sum(map(len, log._entries._bytes))
        self._demand(
            owner, "bytes of batches to be read again", resident, self._world.options.resident_bytes + unwritten
        )
        first, last, gathered = node._journal._gathered
        if first != last:
            self._demand(owner, "bytes gathered for sending", len(gathered), limits.append_bytes)

    def _weigh_messages(self, owner: SimulatedNode, node: QuorumNode) -> None:
        limits, waiting = owner.config.limits, node._outbox._waiting
        self._demand(owner, "messages that wait", len(waiting), _HELD_MESSAGES_MAX + _MESSAGES_OF_ONE_TURN)
        for peer, progress in node._replication.progress.items():
            sizes = [size for _, size in progress.inflight]
            bound = limits.inflight_bytes + _message(limits.append_bytes, max(sizes, default=0))
            self._demand(owner, f"bytes on their way to {peer}", sum(sizes), bound)

    def _weigh_checkpoints(self, owner: SimulatedNode, node: QuorumNode) -> None:
        """Pieces of a checkpoint that arrived, and wait for the disk."""
        bulk = node._bulk
        queued = [*bulk._waiting, *([bulk._running] if bulk._running is not None else [])]
        pieces = [len(one.job.data) for one in queued if isinstance(one.job, ReceiveChunkJob)]
        self._demand(
            owner, "bytes of a checkpoint that wait for its disk", sum(pieces), owner.config.limits.chunk_bytes
        )

    def _weigh_connections(self, owner: SimulatedNode, node: QuorumNode) -> None:
        """Weigh the bytes that were sent to each peer and lie in sockets, its own or the peer's: a peer may be frozen.

        Twice what may be unmatched: behind a conflict a leader begins anew, with the rest still on its way.
        """
        limits, network = owner.config.limits, self._world.network
        for peer in owner.config.peer_ids:
            found = network.waiting(owner.node_id, peer)
            if found > _SMALL_TALK_BYTES:
                # The largest may have left the log since it was sent.
                largest = max([self._world.largest_batch, *node._log._entries._sizes])
                unmatched = limits.inflight_bytes + _message(limits.append_bytes, largest)
                bound = min(2 * unmatched + 2 * limits.chunk_bytes + _SMALL_TALK_BYTES, limits.write_buffer_bytes)
                self._demand(owner, f"bytes in sockets towards {peer}", found, bound)

    def _demand(self, owner: SimulatedNode, what: str, found: int, bound: int) -> None:
        if found > bound:
            self._world.violation(f"node {owner.node_id} holds {found} {what}, {bound} are the most")


def _chunks(steps: Iterable[DiskStep]) -> list[int]:
    return [len(chunk) for step in steps if isinstance(step, WriteBatches) for chunk in step.chunks]


def _message(append_bytes: int, largest: int) -> int:
    """The bytes that may come on top of a bound: the message, or the batches of a turn, with which it was reached."""
    return max(append_bytes, _OF_ONE_TURN * largest)
