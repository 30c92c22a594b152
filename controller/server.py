"""One controller process: directory, quorum, controller and HTTP API, put together. The composition root.

The only module of this package that knows ``quorum``.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog

from controller.active_role import ActiveRole
from controller.bootstrap import bootstrap_records
from controller.checkpoint_writer import CheckpointLimits, CheckpointWriter
from controller.client import ControllerClient
from controller.controller_registration import own_registration
from controller.digest_watch import DigestWatch
from controller.disk_findings import DiskFindings
from controller.event_queue import EventQueue
from controller.http.counters import Counters
from controller.http.digests import Digests
from controller.http.feed import MetadataFeed
from controller.http.heard import HeardBrokers
from controller.http.log_feed import LogFeedSource
from controller.http.partition_counts import CountedImages
from controller.http.past import PastImages
from controller.http.ports import Node, NodePosition, Peer, QuorumView, VoterView
from controller.http.serving import HttpServer
from controller.leader_watch import LeaderWatch
from controller.loop_scheduler import LoopScheduler
from controller.operations import Operations
from controller.partition_search import PartitionSearch
from controller.process_life import Ending, beside
from controller.quorum_controller import QuorumController
from controller.registrar import Registrar
from controller.seams import ControllerLimits
from controller.settings import ControllerSettings
from controller.settings_parts import controller_config, feed_limits, listeners, node_limits, role_settings
from controller.settings_source import read_secret
from controller.surroundings import OsRandom, ProcessFaults, new_uuid
from controller.warm_up import warm_up
from controller.work_beside import WorkBeside
from controller.write_log import Account, keep_account, tell_state
from metadata_log.checkpoint_files import BOOTSTRAP_ID
from metadata_log.directory import ForeignDirectory, MetadataDirectory
from metadata_log.disk import RealDisk
from metadata_log.ids import ZERO_UUID, uuid_from_text, uuid_text
from metadata_log.reader import classify
from metadata_log.retention import RetentionConfig
from metadata_log.segment_log import LogConfig, MetadataLog
from quorum.config import QuorumConfig, QuorumLimits, QuorumTiming, VoterAddress
from quorum.host import CommittedBatches, SnapshotReader
from quorum.runtime import QuorumRuntime
from quorum.storage import NodeStorage
from snapshots.replay_state import ReplayState
from snapshots.whole_checkpoints import load_checkpoint

log = structlog.get_logger()

#: Requests under way get this long when the process is told to stop.
_HTTP_GRACE_S: Final = 2.0
#: After its start a process leaves the quorum this long to find a leader before it does anything on the side.
_SETTLED_S: Final = 0.2


class RuntimeQuorum:
    """``controller.seams.Quorum`` over the runtime."""

    def __init__(self, runtime: QuorumRuntime) -> None:
        self._runtime = runtime
        self.append = runtime.node.append
        self.resign = runtime.node.resign
        self.read_barrier = runtime.node.read_barrier

    @property
    def leader_id(self) -> int | None:
        return self._runtime.node.leader_id

    @property
    def log_end_offset(self) -> int:
        return self._runtime.node.log_end_offset


class _Listener:
    """``quorum.host.QuorumListener``: hands everything to the controller, which is made after the quorum."""

    def __init__(self, counters: Counters, leaders: LeaderWatch, log: MetadataLog, node_id: int) -> None:
        self._counters = counters
        self._leaders = leaders
        self._log = log
        self._node_id = node_id
        self.controller: QuorumController | None = None

    def _bound(self) -> QuorumController:
        assert self.controller is not None, "the quorum speaks only after it was started"
        return self.controller

    def on_commit(self, batches: CommittedBatches) -> None:
        self._bound().on_commit(batches)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        image = load_checkpoint(classify(Path(reader.path)))
        self._counters.checkpoints_loaded += 1
        log.info("checkpoint.loaded", path=reader.path, end_offset=reader.end_offset, epoch=reader.epoch)
        self._bound().on_snapshot(ReplayState(image), reader.end_offset)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        log.info("leader.changed", leader=leader_id, epoch=epoch)
        if leader_id is not None:
            self._counters.new_active_controllers += 1
        now, end = time.monotonic(), self._log.end_offset
        self._leaders.changed(leader_id, now, is_own=leader_id == self._node_id, log_end_offset=end)
        self._bound().on_leader_change(leader_id, epoch)


class ServedCluster:
    """``controller.http.ports.Cluster``."""

    def __init__(
        self,
        runtime: QuorumRuntime,
        storage: NodeStorage,
        faults: ProcessFaults,
        counters: Counters,
        directory: MetadataDirectory,
        events: EventQueue,
        leaders: LeaderWatch,
    ) -> None:
        self._runtime = runtime
        self._node_id = runtime.node.node_id
        self._storage = storage
        self._events = events
        self._leaders = leaders
        self._started_at = time.monotonic()
        self._faults = faults
        self._counters = counters
        self._directory = directory
        is_short = directory.is_short_of_space
        self._disk = DiskFindings(storage.damage, storage.state_damage, is_short_of_space=is_short)
        self._disk.write_down(storage.log, storage.set_aside)
        self._behind_since: float | None = None

    def quorum(self) -> QuorumView:
        """As of now."""
        status = self._runtime.node.status()
        voters = {
            peer.node_id: VoterView(
                peer.node_id,
                is_connected=peer.is_connected,
                is_voting=peer.is_voter,
                durable_end=peer.acknowledged_end,
                last_contact_ms_ago=None if peer.last_contact_age is None else peer.last_contact_age * 1000,
                caught_up_ms_ago=None if peer.caught_up_age is None else peer.caught_up_age * 1000,
                waits_for=peer.waits_for,
                silent_ms=None if (silence := self._runtime.silence(peer.node_id)) is None else silence * 1000,
            )
            for peer in status.peers
        }
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
            generation=self._directory.meta.generation,
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
        """What is wrong with this node and has not stopped it."""
        status = self._runtime.node.status()
        found = [*self._disk.sentences(is_voting=status.is_voter), *self._faults.sentences]
        return [*found, f"it does not lead: {status.hindrance}"] if status.hindrance else found

    def stalled_ms(self) -> float:
        """How long committed records have been waiting to be applied; 0 when none are."""
        node = self._runtime.node
        if node.applied_end >= node.high_watermark:
            self._behind_since = None
            return 0.0
        now = time.monotonic()
        if self._behind_since is None:
            self._behind_since = now
        return (now - self._behind_since) * 1000

    def counters(self) -> Counters:
        """What was counted since the process started; cheap, for it is asked with every answer."""
        return self._counters

    def refreshed_counters(self) -> Counters:
        """The same, with what the quorum, the event queue and the log count brought up to date."""
        counters, latest = self._counters, self._storage.checkpoints.latest
        counters.quorum = asdict(self._runtime.node.metrics)
        counters.event_timeouts = dict(self._events.timed_out)
        self._leaders.report(counters, self._storage.log.end_offset)
        if latest is None or latest.id == BOOTSTRAP_ID:
            counters.latest_checkpoint_age_seconds = time.monotonic() - self._started_at
        else:
            counters.latest_checkpoint_bytes = latest.size
            counters.latest_checkpoint_age_seconds = time.time() - latest.last_contained_timestamp / 1000
        return self._counters

    def wall_ms(self) -> float:
        """Milliseconds since 1970."""
        return time.time() * 1000


async def run_controller_process(settings: ControllerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then hand leadership over by resigning, and close.

    Raises:
        QuorateError, OSError: the process cannot start; one sentence says why.
    """
    ending = Ending()
    async with AsyncExitStack() as stack:
        work = await _start(settings, stack)
        asyncio.get_running_loop().set_exception_handler(work[0].unhandled)
        log.info("controller.started", node_id=settings.node_id, http=str(settings.http_bind))
        on_the_side = asyncio.create_task(beside("start", _work_when_settled(*work), work[0]))
        await ending.is_asked_for.wait()
        on_the_side.cancel()
        log.info("controller.stopping", node_id=settings.node_id)


async def _work_when_settled(faults: ProcessFaults, registrar: Registrar, watch: DigestWatch) -> None:
    await asyncio.sleep(_SETTLED_S)
    await warm_up(LoopScheduler(faults), faults)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(beside("registration", registrar.run(), faults))
        tasks.create_task(beside("digest watch", watch.run(), faults))


async def _start(settings: ControllerSettings, stack: AsyncExitStack) -> tuple[ProcessFaults, Registrar, DigestWatch]:
    disk = RealDisk()
    directory = MetadataDirectory.open(disk, str(settings.directory), settings.node_id, settings.cluster_id)
    stack.callback(directory.close)
    secret = read_secret(settings.shared_secret_file) if settings.shared_secret_file is not None else b""
    quorum_config = _quorum_config(settings, directory)
    log_config = LogConfig(settings.log.segment_bytes, settings.log.resident_bytes)
    storage = NodeStorage.open(disk, directory.log_path, quorum_config, log_config)
    counters, leaders = Counters(), LeaderWatch()
    faults = ProcessFaults(counters)
    listener = _Listener(counters, leaders, storage.log, settings.node_id)

    def fatal(error: BaseException) -> None:
        faults.fatal(f"controller {settings.node_id} must stop", error)

    runtime = QuorumRuntime(quorum_config, storage, listener, fatal, secret=secret)
    stack.push_async_callback(runtime.stop)
    role = _role(settings, directory, disk)
    limits = ControllerLimits(settings.limits.queue_length_max, settings.limits.uncommitted_bytes_max)
    controller = QuorumController(settings.node_id, RuntimeQuorum(runtime), role, LoopScheduler(faults), faults, limits)
    role.bind(controller)
    listener.controller = controller
    stack.callback(controller.close)
    controller.events.observe = counters.events.note
    cluster = ServedCluster(runtime, storage, faults, counters, directory, controller.events, leaders)
    beside = WorkBeside(settings.log.checkpoint_work_percent)
    stack.callback(beside.close)
    checkpoints = _checkpoint_writer(settings, storage, runtime, controller, beside, faults)
    account = keep_account(settings.directory, controller, is_logged=settings.logging.level == "debug")
    stack.callback(account.close)
    node = _node(settings, storage, controller, role, cluster, checkpoints, directory, secret, account, beside)
    stack.callback(tell_state(controller, node.heard, storage.log).close)
    client = ControllerClient([str(voter.http) for voter in settings.voters], shared_secret=secret or None)
    stack.push_async_callback(client.close)
    registrar = Registrar(controller, own_registration(settings.node_id, new_uuid(), listeners(settings)), client)

    def stable_moved() -> None:
        node.feed.moved()
        node.digests.note(controller.stable)
        checkpoints.moved()
        registrar.moved()

    controller.on_stable = stable_moved
    runtime.node.on_damaged_checkpoint(faults.checkpoint_rotted(checkpoints.renew))
    await runtime.start()
    await _serve(node, settings, stack)
    # First of all when the process ends: whoever waits for news holds up the HTTP server.
    stack.callback(node.feed.close)
    stack.callback(node.digests.close)
    return faults, registrar, DigestWatch(node, client, faults, counters)


def _node(
    settings: ControllerSettings,
    storage: NodeStorage,
    controller: QuorumController,
    role: ActiveRole,
    cluster: ServedCluster,
    checkpoints: CheckpointWriter,
    directory: MetadataDirectory,
    secret: bytes,
    account: Account,
    beside: WorkBeside,
) -> Node:
    # What this controller has applied, not what is known to be committed: a follower is never ahead of the one it asks.
    source = LogFeedSource(storage.log, lambda: controller.applied_offset, lambda: controller.is_active)
    return Node(
        cluster_id=directory.meta.cluster_id,
        peers={voter.id: Peer(voter.id, f"http://{voter.http}") for voter in settings.voters},
        controller=controller,
        operations=Operations(controller, role),
        cluster=cluster,
        feed=MetadataFeed(source, feed_limits(settings)),
        checkpoints=storage.checkpoints,
        checkpoint_taking=checkpoints,
        past=PastImages(source, storage.checkpoints, lambda: controller.stable),
        counts=CountedImages(settings.topics.min_insync_replicas),
        search=PartitionSearch(role.config),
        heard=HeardBrokers(controller.scheduler.monotonic_ms),
        digests=Digests(source, beside.digests, beside.digest_pace),
        limits=node_limits(settings),
        shared_secret=secret or None,
        audit=account.audit,
        refusals=account.refusals,
    )


def _quorum_config(settings: ControllerSettings, directory: MetadataDirectory) -> QuorumConfig:
    own = settings.voter.directory_id
    if own is not None and uuid_from_text(own) not in (directory.meta.directory_id, directory.meta.replaces):
        problem = f"is directory {uuid_text(directory.meta.directory_id)}, and the settings say {own}"
        raise ForeignDirectory(directory.path, problem, "start the node with its own directory, or correct `voters`")
    return QuorumConfig(
        cluster_id=directory.meta.cluster_id,
        node_id=settings.node_id,
        directory_id=directory.meta.directory_id,
        voters=tuple(
            VoterAddress(
                voter.id,
                voter.quorum.host,
                voter.quorum.port,
                ZERO_UUID if voter.directory_id is None else uuid_from_text(voter.directory_id),
            )
            for voter in settings.voters
        ),
        kraft_version=settings.quorum.kraft_version,
        generation=directory.meta.generation,
        http_url=f"http://{settings.voter.http}",
        timing=QuorumTiming(
            election_timeout_min=settings.quorum.election_timeout_min_ms / 1000,
            election_timeout_max=settings.quorum.election_timeout_max_ms / 1000,
            heartbeat_interval=settings.quorum.heartbeat_interval_ms / 1000,
            disk_timeout=settings.quorum.disk_timeout_ms / 1000,
        ),
        limits=QuorumLimits(unwritten_bytes=settings.limits.unwritten_bytes_max),
        retention=RetentionConfig(settings.log.retention_bytes, settings.log.retention_ms),
    )


def _role(settings: ControllerSettings, directory: MetadataDirectory, disk: RealDisk) -> ActiveRole:
    bootstrap = directory.bootstrap(disk)
    records = () if bootstrap is None else bootstrap_records(bootstrap, directory.path)
    key_file = settings.tokens.secret_key_file
    token_secret = None if key_file is None else read_secret(key_file, "tokens.secret_key_file", chars_min=1)
    config = controller_config(settings, directory.meta.cluster_id, token_secret)
    return ActiveRole(config, role_settings(settings), records, OsRandom(), new_uuid)


def _checkpoint_writer(
    settings: ControllerSettings,
    storage: NodeStorage,
    runtime: QuorumRuntime,
    controller: QuorumController,
    beside: WorkBeside,
    faults: ProcessFaults,
) -> CheckpointWriter:
    limits = CheckpointLimits(settings.log.checkpoint_bytes, settings.log.checkpoint_interval_ms)
    covered, write = storage.checkpoints.covered_offset, runtime.node.write_checkpoint
    clock, pace, memory, told = controller.scheduler, beside.checkpoint_pace, beside.digests, faults.report_checkpoint
    return CheckpointWriter(controller, storage.log, covered, write, told, limits, clock, pace, memory)


async def _serve(node: Node, settings: ControllerSettings, stack: AsyncExitStack) -> None:
    address = settings.http_bind
    server = await HttpServer.start(node, address.host, address.port, _HTTP_GRACE_S)
    stack.push_async_callback(server.close)
