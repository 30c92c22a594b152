"""Controllers in this process behind real HTTP servers: the production controller over a log that commits at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, NamedTuple

import aiohttp
import numpy as np
from numpy.typing import NDArray

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.background.checkpoint_writer import CheckpointWriter
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.feed.feed import MetadataFeed
from quorate.controller.feed.log_feed import LogFeedSource, LogHistorySource
from quorate.controller.http.ports import Node, NodeLimits, NodePosition, Peer, QuorumView, VoterView
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route
from quorate.controller.http.serving import HttpServer
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.operations.bootstrap import fresh_records
from quorate.controller.process.access_parts import AccessParts
from quorate.controller.process.composition import Machine, compose
from quorate.controller.reads.broker_absences import LogAbsences
from quorate.controller.reads.broker_reports import BrokerReports
from quorate.controller.reads.digests import StateDigests
from quorate.controller.reads.partition_counts import CountedImages
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.past import PastImages
from quorate.controller.reads.replica_additions import LogAdditions
from quorate.metadata_log.checkpoints.checkpoint_files import (
    CheckpointId,
    CheckpointSurvey,
    check_checkpoint,
    checkpoint_name,
)
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent, CheckpointStore, WriteCheckpointJob
from quorate.metadata_log.disk import drain
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from quorate.snapshots.digest_memory import DigestMemory
from tests.default_parts import (
    checkpoint_limits,
    controller_config,
    controller_limits,
    feed_limits,
    log_config,
    node_limits,
    role_settings,
    token_config,
)
from tests.guards.sound_images import watch
from tests.integration.made_certificates import NO_TLS, SpokenTls
from tests.log_support import DIRECTORY, checkpoint_bytes
from tests.unit.controller.manual_quorum import ManualQuorum, RecordingFaults

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
#: What delegation tokens are made with.
TOKEN_SECRET = b"the members' own"
#: However long a test takes, none of the brokers that it registers by hand is fenced meanwhile.
CONFIG = {"default_replication_factor": 1, "session_timeout_ms": 600_000}


class Bad(NamedTuple):
    """A request and its refusal: a row of a table of bad input."""

    name: str
    method: str
    path: str
    body: Any
    status: int
    error: str
    #: Part of the sentence.
    says: str


class DrawnNumbers:
    """Placement's random source, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def next_int(self, bound: int) -> int:
        return self._random.randrange(bound)

    def next_ints(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self.next_int(bound) for bound in bounds.tolist()], np.int64)


class InstantQuorum(ManualQuorum):
    """A log that commits what was appended in the next turn of the loop, on all members; or not, while held."""

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[int, Member] = {}
        self.is_held = False

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        last = super().append(epoch, payload, record_count)
        for member in self.members.values():
            member.log.append(self.batches[-1])
        asyncio.get_running_loop().call_soon(self.commit)
        return last

    def commit(self) -> None:
        """Everything appended so far, unless commits are held."""
        if self.is_held or self.log_end_offset == self.committed:
            return
        batches = self.take_committed(1_000_000)
        for member in self.members.values():
            member.controller.on_commit(batches)

    def elect(self, leader_id: int | None) -> None:
        """Somebody leads from now on, or nobody."""
        self.leader_id = leader_id
        self.leader_epoch += 1
        for member in self.members.values():
            member.controller.on_leader_change(leader_id, self.leader_epoch)


class SoftState:
    """``controller.http.ports.Cluster`` of one member."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._counters = Counters()
        self.known_faults: list[str] = []
        self.stalled = 0.0
        self.is_voting = True
        self.lost, self.unheard = set[int](), set[int]()  # not connected; never heard of by this leader
        self.generation = 0
        #: Members without a vote, and for whose answers they wait.
        self.without_vote: dict[int, tuple[int, ...]] = {}

    def quorum(self) -> QuorumView:
        quorum, member = self._member.quorum, self._member
        leads = quorum.leader_id == member.node_id
        others = [id_ for id_ in quorum.members if id_ != member.node_id]
        end = quorum.log_end_offset
        return QuorumView(
            leader_id=quorum.leader_id,
            epoch=quorum.leader_epoch,
            high_watermark=quorum.committed,
            log_start_offset=0,
            log_end_offset=end,
            durable_end=end,
            is_voting=self.is_voting,
            voters={
                id_: VoterView(
                    id_,
                    id_ not in self.lost,
                    id_ not in self.without_vote,
                    durable_end=end if leads and id_ not in self.unheard else None,
                    last_contact_ms_ago=5.0 if leads else None,
                    caught_up_ms_ago=6.0 if leads else None,
                    waits_for=self.without_vote.get(id_, ()),
                )
                for id_ in others
            },
            voted_id=quorum.leader_id,
            log_end_epoch=quorum.leader_epoch,
            generation=self.generation,
        )

    def position(self) -> NodePosition:
        view = self.quorum()
        return NodePosition(view.leader_id, view.epoch, view.high_watermark)

    def faults(self) -> list[str]:
        return self.known_faults

    def stalled_ms(self) -> float:
        return self.stalled

    def counters(self) -> Counters:
        return self._counters

    def refreshed_counters(self) -> Counters:
        return self._counters

    def wall_ms(self) -> float:
        return self._member.controller.scheduler.wall_ms()


class HeldWriting:
    """Writes a member's checkpoints in the next turn of the loop, or, while held, when it is told to."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.is_held = False
        self._jobs: list[tuple[WriteCheckpointJob, Callable[[StorageError | None], None]]] = []
        self.writer = CheckpointWriter(
            member.controller,
            member.log,
            member.checkpoints.covered_offset,
            self._write,
            ProcessFaults(Counters()).report_checkpoint,
            checkpoint_limits(),
            member.controller.scheduler,
            Unpaced(),
            DigestMemory(),
        )

    def _write(self, end_offset: int, content: CheckpointContent, done: Callable[[StorageError | None], None]) -> None:
        epoch = self._member.log.epoch_at(end_offset)
        assert epoch is not None
        job = self._member.checkpoints.write_job(CheckpointId(end_offset, epoch), content)
        self._jobs.append((job, done))
        asyncio.get_running_loop().call_soon(self.write_waiting)

    def write_waiting(self) -> None:
        """Write what waits, unless it is held."""
        while self._jobs and not self.is_held:
            job, done = self._jobs.pop()
            drain(job)
            self._member.checkpoints.job_done(job)
            done(None)


class Member:
    """One controller and its HTTP server."""

    def __init__(
        self,
        node_id: int,
        quorum: InstantQuorum,
        peers: Mapping[int, Peer],
        limits: NodeLimits,
        access: AccessParts,
        token_secret: bytes | None,
    ) -> None:
        self.node_id, self.quorum, self.faults = node_id, quorum, (faults := RecordingFaults())
        self.disk = MemoryDisk(Random(node_id))
        self.disk.put(f"{DIRECTORY}/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
        self.log = MetadataLog.open(self.disk, DIRECTORY, log_config())
        ids = count(1000 * node_id)
        self.controller, self.role, operations = compose(
            controller_config(node_id, CLUSTER_ID, **CONFIG, tokens=token_config(token_secret)),
            role_settings(idle_noop_interval_ms=0),
            controller_limits(),
            fresh_records(),
            quorum,
            Machine(LoopScheduler(faults), faults, DrawnNumbers(node_id), lambda: next(ids).to_bytes(16, "big")),
        )
        self.soft, self.checkpoints = SoftState(self), CheckpointStore(self.disk, DIRECTORY, CheckpointSurvey((), ()))
        self.writing, self.url = HeldWriting(self), ""
        log = (self.log, lambda: quorum.committed, lambda: self.controller.is_active)
        source, history = LogFeedSource(*log), LogHistorySource(*log)
        self.digests = StateDigests(source, DigestMemory(), Unpaced())
        old = (history, self.checkpoints, lambda: (*self.digests.kept(), self.controller.stable))
        self.node = Node(
            cluster_id=CLUSTER_ID,
            peers=peers,
            controller=self.controller,
            operations=operations,
            cluster=self.soft,
            feed=MetadataFeed(source, feed_limits(), history=history),
            checkpoints=self.checkpoints,
            checkpoint_taking=self.writing.writer,
            past=PastImages(*old, self.controller.scheduler.wall_ms),
            counts=CountedImages(self.role.config),
            search=PartitionSearch(self.role.config),
            broker_reports=BrokerReports(self.controller.scheduler.monotonic_ms),
            digests=self.digests,
            limits=limits,
            config=self.role.config,
            absences=LogAbsences(history),
            additions=LogAdditions(history),
            access=access.over(lambda: self.controller.stable),
        )
        self.controller.on_stable = self._moved
        self._server: HttpServer | None = None

    def _moved(self) -> None:
        self.node.feed.moved()
        self.digests.note(self.controller.stable)

    async def serve(self, routes: Sequence[Route], tls: SpokenTls) -> None:
        """Listen on a free port."""
        watch(lambda: self.controller.stable)
        node, wanted = replace(self.node, tls=tls.as_client), tls.wants_certificates
        self._server = await HttpServer.start(
            node, "127.0.0.1", 0, 1.0, routes, tls=tls.as_server, wants_certificates=wanted
        )
        self.url = f"{'https' if tls.as_server else 'http'}://127.0.0.1:{self._server.port}"

    async def stop_serving(self) -> None:
        """Close the server and all its connections; the port refuses from now on."""
        self.node.feed.close()
        self.digests.close()
        if self._server is not None:
            await self._server.close()
            self._server = None

    def add_checkpoint(self, end_offset: int, epoch: int, filling: bytes = b"state") -> bytes:
        """Put a checkpoint with opaque content into the directory, and take notice of it."""
        checkpoint = CheckpointId(end_offset, epoch)
        data = checkpoint_bytes(checkpoint, filling)
        path = f"{DIRECTORY}/{checkpoint_name(checkpoint)}"
        self.disk.put(path, data)
        self.checkpoints._infos[checkpoint] = check_checkpoint(self.disk, path, checkpoint)
        return data


class Stage:
    """All of them, and a session to talk to them."""

    def __init__(self, quorum: InstantQuorum, session: aiohttp.ClientSession, peers: dict[int, Peer]) -> None:
        self.quorum = quorum
        self.session = session
        #: Where each controller looks for the others.
        self.peers = peers

    @property
    def members(self) -> dict[int, Member]:
        return self.quorum.members

    @property
    def urls(self) -> list[str]:
        return [member.url for member in self.members.values()]

    async def elect(self, leader_id: int | None) -> None:
        """Elect a leader and let its activation commit."""
        self.quorum.elect(leader_id)
        for _ in range(5):
            await asyncio.sleep(0)

    async def ask(
        self, node_id: int, method: str, path: str, json: Any = None, **options: Any
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, body and headers of an answer in JSON."""
        if json is not None:
            options["json"] = json
        async with self.session.request(method, self.members[node_id].url + path, **options) as answer:
            return answer.status, await answer.json(), answer.headers

    async def register(self, node_id: int, broker_id: int, rack: str | None = None) -> int:
        """Register and unfence a broker; its epoch."""
        registration = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": "AAAAAAAAAAAAAAAAAAAA" + f"{broker_id:02d}"[0] + "A",
            "listeners": [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9000 + broker_id}],
            "features": [
                {"name": name, "min_supported_version": 0, "max_supported_version": 30}
                for name in (record.record.name for record in fresh_records())  # type: ignore[union-attr]
            ],
            "rack": rack,
            "log_dirs": [f"BBBBBBBBBBBBBBBBBBBBB{'AQgw'[broker_id % 4]}"],
        }
        status, reply, _ = await self.ask(node_id, "POST", "/v1/broker-rpc/register", registration)
        assert status == 200, reply
        epoch: int = reply["broker_epoch"]
        heartbeat = {"broker_id": broker_id, "broker_epoch": epoch, "current_metadata_offset": self.quorum.committed}
        status, reply, _ = await self.ask(node_id, "POST", "/v1/broker-rpc/heartbeat", heartbeat)
        assert (status, reply["is_fenced"]) == (200, False), reply
        return epoch


@asynccontextmanager
async def stage(
    count_: int = 3,
    *,
    active: int | None = 1,
    limits: NodeLimits | None = None,
    routes: Sequence[Route] = ROUTES,
    shared_secret: bytes | None = None,
    access: Callable[[int], AccessParts] | None = None,
    token_secret: bytes | None = TOKEN_SECRET,
    tls: SpokenTls = NO_TLS,
) -> AsyncIterator[Stage]:
    """Controllers 1 to ``count_``, each with its ``access``; the active one has completed its activation."""
    by_secret = AccessParts(SharedSecretAuthentication(None if shared_secret is None else lambda: (shared_secret,)))
    quorum, peers = InstantQuorum(), dict[int, Peer]()
    trusted = tls.as_client() if tls.as_client else True
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session:
        for node_id in range(1, count_ + 1):
            parts = by_secret if access is None else access(node_id)
            member = Member(node_id, quorum, peers, limits or node_limits(), parts, token_secret)
            quorum.members[node_id] = member
            await member.serve(routes, tls)
            peers[node_id] = Peer(node_id, member.url)
        built = Stage(quorum, session, peers)
        try:
            if active is not None:
                await built.elect(active)
            yield built
        finally:
            for member in quorum.members.values():
                await member.stop_serving()
                member.controller.close()
