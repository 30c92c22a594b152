"""A controller process's view of itself and its quorum: soft state that is in nobody's image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.faults import FaultHandler
from quorate.controller.engine.leader_counters import LeaderWatch
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http.ports import NodePosition, QuorumView, VoterView
from quorate.controller.process.disk_findings import DiskFindings
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointId
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.records import VersionedRecord
from quorate.quorum.host import QuorumStatus
from quorate.quorum.node import QuorumNode
from quorate.quorum.storage.storage import NodeStorage


@dataclass(frozen=True, slots=True)
class NodeFounding:
    """The facts that a node's directory has and its settings have not."""

    cluster_id: str
    #: How often the quorum was rebuilt.
    generation: int = 0
    is_short_of_space: bool = False
    #: What the first leader of an empty log writes at its head.
    bootstrap: tuple[VersionedRecord, ...] = ()


class RunningQuorum(Protocol):
    """``quorum.runtime.QuorumRuntime``, as far as it is looked at; a simulation brings its own."""

    @property
    def node(self) -> QuorumNode:
        """This process's voice in the agreement."""

    def silence(self, peer: int) -> float | None:
        """For how many seconds nothing was read of a peer; None where no connection stands."""


class NodeFaults(FaultHandler, Protocol):
    """The receiver of a process's faults and alarms (``controller.engine.environment.ProcessFaults``)."""

    @property
    def sentences(self) -> Sequence[str]:
        """The faults of now, a sentence each."""

    def alarm(self, what: str, sentence: str | None) -> None:
        """Something is wrong in the cluster, until None takes it back."""

    def report_checkpoint(self, end_offset: int, took_ms: float, error: StorageError | None) -> None:
        """A checkpoint was written, or could not be."""

    def rotted(self, checkpoint: CheckpointId) -> None:
        """A checkpoint was found damaged, and set aside."""


def voters_seen(status: QuorumStatus, silence: Callable[[int], float | None]) -> dict[int, VoterView]:
    """The other voters, by id, as a node knows of them. ``silence``: as ``RunningQuorum.silence``."""
    return {
        peer.node_id: VoterView(
            peer.node_id,
            is_connected=peer.is_connected,
            is_voting=peer.is_voter,
            durable_end=peer.acknowledged_end,
            last_contact_ms_ago=None if peer.last_contact_age is None else peer.last_contact_age * 1000,
            caught_up_ms_ago=None if peer.caught_up_age is None else peer.caught_up_age * 1000,
            waits_for=peer.waits_for,
            silent_ms=None if (silent_s := silence(peer.node_id)) is None else silent_s * 1000,
            message_version=peer.message_version,
        )
        for peer in status.peers
    }


class ServedCluster:
    """``controller.http.ports.Cluster``."""

    def __init__(
        self,
        runtime: RunningQuorum,
        storage: NodeStorage,
        founded: NodeFounding,
        controller: QuorumController,
        faults: NodeFaults,
        counters: Counters,
        leaders: LeaderWatch,
    ) -> None:
        self._runtime = runtime
        self._node_id = runtime.node.node_id
        self._storage = storage
        self._generation = founded.generation
        self._scheduler = controller.scheduler
        self._events = controller.events
        self._leaders = leaders
        self._started_ms = self._scheduler.monotonic_ms()
        self._faults = faults
        self._counters = counters
        self._disk = DiskFindings(storage.damage, storage.state_damage, is_short_of_space=founded.is_short_of_space)
        self._disk.write_down(storage.log, storage.set_aside)
        #: The end of records that were seen to wait, and since when; others may wait whenever somebody looks.
        self._waiting: tuple[int, float] | None = None

    def quorum(self) -> QuorumView:
        """As of now."""
        status = self._runtime.node.status()
        voters = voters_seen(status, self._runtime.silence)
        # The last leader known is no active controller once nothing connects this node with it.
        leader = None if status.leader_id is None else voters.get(status.leader_id)
        return QuorumView(
            leader_id=status.leader_id if leader is None or leader.is_connected else None,
            epoch=status.epoch,
            high_watermark=status.high_watermark,
            log_start_offset=status.log_start_offset,
            log_end_offset=status.log_end_offset,
            durable_end=status.durable_end,
            is_voting=status.is_voter,
            voters=voters,
            voted_id=self._storage.votes.voted_id,
            log_end_epoch=self._storage.log.last_epoch,
            generation=self._generation,
        )

    def position(self) -> NodePosition:
        """As of now."""
        node = self._runtime.node
        leader_id = node.leader_id
        if leader_id == self._node_id:
            return NodePosition(leader_id, node.epoch, node.high_watermark)
        view = self.quorum()
        return NodePosition(view.leader_id, view.epoch, view.high_watermark)

    def faults(self) -> list[str]:
        """The faults of this node that have not stopped it."""
        status = self._runtime.node.status()
        found = [*self._disk.sentences(is_voting=status.is_voter), *self._faults.sentences]
        burst = self._counters.failed_proofs.sentence(self._scheduler.monotonic_ms())
        found += [] if burst is None else [burst]
        return [*found, f"it does not lead: {status.hindrance}"] if status.hindrance else found

    def stalled_ms(self) -> float:
        """The time for which committed records have been waiting to be applied; 0 when none are."""
        node = self._runtime.node
        if node.applied_end >= node.high_watermark:
            self._waiting = None
            return 0.0
        now_ms = self._scheduler.monotonic_ms()
        if self._waiting is None or node.applied_end >= self._waiting[0]:
            self._waiting = (node.high_watermark, now_ms)
        return now_ms - self._waiting[1]

    def counters(self) -> Counters:
        """The counts since the process started; cheap, for they are asked for with every answer."""
        return self._counters

    def refreshed_counters(self) -> Counters:
        """The same, with what the quorum, the event queue and the log count brought up to date."""
        counters, latest = self._counters, self._storage.checkpoints.latest
        counters.quorum = asdict(self._runtime.node.metrics)
        counters.event_timeouts = dict(self._events.timed_out)
        counters.disk_free_bytes = self._storage.disk.free_bytes(self._storage.directory)
        self._leaders.report(counters, self._storage.log.end_offset)
        if latest is None or latest.id == BOOTSTRAP_ID:
            counters.latest_checkpoint_age_seconds = (self._scheduler.monotonic_ms() - self._started_ms) / 1000
        else:
            counters.latest_checkpoint_bytes = latest.size
            counters.latest_checkpoint_age_seconds = (self.wall_ms() - latest.last_contained_timestamp) / 1000
        return self._counters

    def wall_ms(self) -> float:
        """Milliseconds since 1970."""
        return float(self._scheduler.wall_ms())
