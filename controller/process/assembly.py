"""The composition root of a controller: everything that a process of it consists of, put together once.

``assemble`` is told what the settings say (``ControllerParts``), what the node's directory says (``NodeFounding``), and
where it runs (``Environment``): on a machine, or in the simulation of the whole system, so that what is simulated is
what runs. What only a real process has stands around it, in ``controller.process.server``: sockets, threads, files of
the audit, signals. Apart from these two modules, only ``served_cluster`` and ``quorum_parts`` know ``quorum``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.background.checkpoint_pace import WorkPace
from quorate.controller.background.checkpoint_writer import CheckpointLimits, CheckpointWriter
from quorate.controller.brokers.controller_registration import own_registration
from quorate.controller.client.client import ControllerClient
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.interfaces import ControllerLimits
from quorate.controller.engine.leader_counters import LeaderWatch
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.feed.feed import FeedLimits, MetadataFeed
from quorate.controller.feed.log_feed import LogFeedSource, LogHistorySource
from quorate.controller.http.ports import Node, NodeLimits, Peer
from quorate.controller.logs.audit_reading import AuditReading
from quorate.controller.logs.reads import Reads
from quorate.controller.logs.refusals import Refusals
from quorate.controller.operations.active_role import RoleSettings
from quorate.controller.process.access_parts import AccessParts
from quorate.controller.process.composition import Composed, Machine, compose
from quorate.controller.process.digest_watch import ControllerDigestWatch
from quorate.controller.process.registrar import Registrar
from quorate.controller.process.served_cluster import NodeFaults, NodeFounding, RunningQuorum, ServedCluster
from quorate.controller.protocol.brokers import Listener
from quorate.controller.reads.broker_absences import LogAbsences
from quorate.controller.reads.broker_reports import BrokerReports
from quorate.controller.reads.digests import StateDigests
from quorate.controller.reads.partition_counts import CountedImages
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.past import PastImages
from quorate.controller.reads.quiet_stretches import QuietStretches
from quorate.controller.reads.replica_additions import LogAdditions
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.host import CommittedBatches, QuorumListener, SnapshotReader
from quorate.quorum.node import QuorumNode
from quorate.quorum.storage.storage import NodeStorage
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

log = structlog.get_logger()

Q = TypeVar("Q", bound=RunningQuorum)


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """The settings of each part of a controller (``controller.process.settings_parts``)."""

    config: ControllerConfig
    role: RoleSettings
    limits: ControllerLimits
    checkpoints: CheckpointLimits
    feed: FeedLimits
    api: NodeLimits
    #: Base URL of every controller's HTTP API by its id, this one's included.
    urls: Mapping[int, str]
    #: Where this controller is reached, as it registers it.
    listeners: tuple[Listener, ...]
    access: AccessParts
    #: With which it asks the other controllers over TLS.
    tls: TlsContexts | None = None


class BackgroundWork(Protocol):
    """The work on the state that is done beside the loop (``controller.background.shared.SharedWork``)."""

    @property
    def digests(self) -> DigestMemory:
        """Shared by whoever digests."""

    @property
    def checkpoint_pace(self) -> WorkPace:
        """Of whoever writes checkpoints."""

    @property
    def digest_pace(self) -> WorkPace:
        """Of whoever digests."""

    def moved(self, end_offset: int) -> None:
        """The committed state ends here now."""


@dataclass(frozen=True, slots=True)
class Environment(Generic[Q]):
    """All that a controller has around it: a machine, its peers, its disk, or those of a simulation."""

    machine: Machine[NodeFaults]
    counters: Counters
    background: BackgroundWork
    #: The image that a checkpoint on the disk holds.
    load: Callable[[SnapshotReader], MetadataImage]
    #: A client of the controllers at these URLs. ``assemble`` makes one; it is the caller's to close.
    connect: Callable[[list[str]], ControllerClient]
    #: The agreement with the other controllers, which will tell the listener; not started yet.
    join: Callable[[QuorumListener], Q]
    #: Begins to keep an account of what is decided and refused, for whoever may read it.
    keep_account: Callable[[QuorumController], tuple[AuditReading, Refusals, Reads]]


@dataclass(frozen=True, slots=True)
class Assembly(Generic[Q]):
    """A controller that is complete, and has not begun."""

    quorum: Q
    controller: QuorumController
    #: What the HTTP API works on.
    node: Node
    client: ControllerClient
    #: To be run beside the controller.
    registrar: Registrar
    digest_watch: ControllerDigestWatch

    def release(self) -> None:
        """Whoever waits for news gets none any more: first of all when the process ends."""
        self.node.digests.close()
        self.node.feed.close()


def assemble(
    parts: ControllerParts, founded: NodeFounding, storage: NodeStorage, environment: Environment[Q]
) -> Assembly[Q]:
    """Put a controller together over its opened directory."""
    leaders = LeaderWatch()
    listener = _Listener(environment, leaders, storage.log, parts.config.node_id)
    runtime = environment.join(listener)
    quorum, machine, faults = NodeQuorum(runtime.node), environment.machine, environment.machine.faults
    composed = compose(parts.config, parts.role, parts.limits, founded.bootstrap, quorum, machine)
    controller = listener.controller = composed.controller
    controller.events.observe = environment.counters.events.note
    cluster = ServedCluster(runtime, storage, founded, controller, faults, environment.counters, leaders)
    checkpoints = _checkpoint_writer(parts, storage, runtime, controller, environment)
    quiet = QuietStretches()
    node = _node(parts, founded, storage, composed, cluster, checkpoints, environment, quiet)
    client = environment.connect(list(parts.urls.values()))
    registration = own_registration(parts.config.node_id, machine.new_id(), list(parts.listeners))
    registrar = Registrar(controller, registration, client)

    def stable_moved() -> None:
        environment.background.moved(controller.applied_offset)
        node.feed.moved()
        node.access.moved()
        node.digests.note(controller.stable)
        quiet.note(controller.stable)
        checkpoints.moved()
        registrar.moved()

    def rotted(checkpoint: CheckpointId) -> None:
        faults.rotted(checkpoint)
        checkpoints.renew()

    controller.on_stable = stable_moved
    runtime.node.on_damaged_checkpoint(rotted)
    watch = ControllerDigestWatch(node, client, faults, environment.counters)
    return Assembly(runtime, controller, node, client, registrar, watch)


def _checkpoint_writer(
    parts: ControllerParts,
    storage: NodeStorage,
    runtime: RunningQuorum,
    controller: QuorumController,
    environment: Environment[Q],
) -> CheckpointWriter:
    background = environment.background
    return CheckpointWriter(
        controller,
        storage.log,
        storage.checkpoints.covered_offset,
        runtime.node.write_checkpoint,
        environment.machine.faults.report_checkpoint,
        parts.checkpoints,
        controller.scheduler,
        background.checkpoint_pace,
        background.digests,
    )


def _node(
    parts: ControllerParts,
    founded: NodeFounding,
    storage: NodeStorage,
    composed: Composed,
    cluster: ServedCluster,
    checkpoints: CheckpointWriter,
    environment: Environment[Q],
    quiet: QuietStretches,
) -> Node:
    controller, background, clock = composed.controller, environment.background, environment.machine.scheduler
    # What this controller has applied, not what is known to be committed: a follower is never ahead of the one it asks.
    log = (storage.log, lambda: controller.applied_offset, lambda: controller.is_active)
    source, history = LogFeedSource(*log), LogHistorySource(*log)
    audit, refusals, reads = environment.keep_account(controller)
    digests = StateDigests(source, background.digests, background.digest_pace)
    return Node(
        cluster_id=founded.cluster_id,
        peers={node_id: Peer(node_id, url) for node_id, url in parts.urls.items()},
        controller=controller,
        operations=composed.operations,
        cluster=cluster,
        feed=MetadataFeed(source, parts.feed, lambda: clock.monotonic_ms() / 1000, history),
        checkpoints=storage.checkpoints,
        checkpoint_taking=checkpoints,
        past=PastImages(history, storage.checkpoints, lambda: (*digests.kept(), controller.stable), clock.wall_ms),
        counts=CountedImages(parts.config),
        search=PartitionSearch(parts.config),
        broker_reports=BrokerReports(clock.monotonic_ms),
        digests=digests,
        limits=parts.api,
        config=parts.config,
        absences=LogAbsences(history, quiet),
        additions=LogAdditions(history),
        access=parts.access.over(lambda: controller.stable),
        tls=parts.tls,
        audit=audit,
        refusals=refusals,
        reads=reads,
    )


class NodeQuorum:
    """``controller.engine.interfaces.Quorum`` over a node."""

    def __init__(self, node: QuorumNode) -> None:
        self._node = node
        self.append = node.append
        self.resign = node.resign
        self.read_barrier = node.read_barrier

    @property
    def leader_id(self) -> int | None:
        return self._node.leader_id

    @property
    def log_end_offset(self) -> int:
        return self._node.log_end_offset


class _Listener:
    """``quorum.host.QuorumListener``: hands everything to the controller, which is made after the quorum."""

    def __init__(self, environment: Environment[Q], leaders: LeaderWatch, segments: MetadataLog, node_id: int) -> None:
        self._environment = environment
        self._counters = environment.counters
        self._leaders = leaders
        self._log = segments
        self._node_id = node_id
        self.controller: QuorumController | None = None

    def _bound(self) -> QuorumController:
        assert self.controller is not None, "the quorum speaks only after it was started"
        return self.controller

    def on_commit(self, batches: CommittedBatches) -> None:
        self._bound().on_commit(batches)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        image = self._environment.load(reader)
        self._counters.checkpoints_loaded += 1
        log.info("checkpoint.loaded", path=reader.path, end_offset=reader.end_offset, epoch=reader.epoch)
        self._bound().on_snapshot(ReplayState(image), reader.end_offset)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        log.info("leader.changed", leader=leader_id, epoch=epoch)
        if leader_id is not None:
            self._counters.new_active_controllers += 1
        now_ms, end = self._environment.machine.scheduler.monotonic_ms(), self._log.end_offset
        self._leaders.changed(leader_id, now_ms / 1000, is_own=leader_id == self._node_id, log_end_offset=end)
        self._bound().on_leader_change(leader_id, epoch)
