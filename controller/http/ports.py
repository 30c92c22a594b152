"""The HTTP layer's needs of the rest of a controller process. `process.server` binds it; tests bind their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.background.checkpoint_writer import TakenCheckpoint
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.event_queue import EventQueue, Scheduler
from quorate.controller.engine.head_counters import HeadWatch
from quorate.controller.engine.marks import Marks
from quorate.controller.engine.purgatory import Reply
from quorate.controller.feed.feed import MetadataFeed
from quorate.controller.logs.audit_reading import AuditReading
from quorate.controller.logs.reads import Reads
from quorate.controller.logs.refusals import Refusals
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.reads.answer_turns import AnswerTurns
from quorate.controller.reads.broker_absences import BrokerAbsences
from quorate.controller.reads.broker_reports import BrokerReports
from quorate.controller.reads.digests import StateDigests
from quorate.controller.reads.partition_counts import CountedImages
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.past import Checkpoints, PastReads
from quorate.controller.reads.read_turns import ReadTurns
from quorate.controller.reads.replica_additions import ReplicaAdditions
from quorate.snapshots.image.image import MetadataImage

T = TypeVar("T")


class Controller(Protocol):
    """``controller.engine.quorum_controller.QuorumController``."""

    node_id: int

    head_watch: HeadWatch
    events: EventQueue
    scheduler: Scheduler

    @property
    def is_active(self) -> bool:
        """Whether this node decides."""

    @property
    def epoch(self) -> int:
        """In which this node decides; -1 where it does not."""

    @property
    def active_id(self) -> int | None:
        """The active controller, as far as this node knows."""

    @property
    def stable(self) -> MetadataImage:
        """The newest committed state."""

    @property
    def applied_offset(self) -> int:
        """Exclusive end of what it contains."""

    async def append_read_event(self, operation: Callable[[MetadataImage], T], *, is_linearizable: bool = False) -> T:
        """Answer from the committed state, after a read barrier if it is to be linearizable."""


@dataclass(frozen=True, slots=True)
class VoterView:
    """The knowledge of this node about another voter."""

    node_id: int
    #: Whether a connection to it stands. One on which nothing is heard for a few election timeouts does not.
    is_connected: bool
    is_voting: bool
    #: Exclusive end of what is durable there; None if it has not answered in this epoch, or this node does not lead.
    durable_end: int | None
    #: None if it has not answered in this epoch, or this node does not lead.
    last_contact_ms_ago: float | None
    #: None if it has never had everything in this epoch, or this node does not lead.
    caught_up_ms_ago: float | None
    #: It does not vote, and will not before these nodes have answered this one, which leads.
    waits_for: tuple[int, ...] = ()
    #: For how long nothing was read on the connection; None where none stands.
    silent_ms: float | None = None
    #: Of the messages to it and from it; None where no connection stands.
    message_version: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumView:
    """Agreement as this node sees it. All ends are exclusive."""

    leader_id: int | None
    epoch: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    #: End of what is durable here.
    durable_end: int
    #: Whether this node votes.
    is_voting: bool
    #: The other voters, by id.
    voters: Mapping[int, VoterView]
    #: Whom this node voted for in this epoch; None: for nobody.
    voted_id: int | None
    #: Epoch of the log's last batch.
    log_end_epoch: int
    #: How often the quorum was rebuilt (``quorate recover``), as a number that grows; 0: never.
    generation: int = 0
    #: Whether a log tells it, and not a node that runs: then leader, epoch and ``high_watermark`` are all it knows.
    is_past: bool = False


class NodePosition(NamedTuple):
    """The part of every answer that is about the node that made it: a part of its ``QuorumView``."""

    leader_id: int | None
    epoch: int
    #: Exclusive.
    high_watermark: int


class Cluster(Protocol):
    """Soft state that is nobody's image: who was heard of when."""

    def quorum(self) -> QuorumView:
        """As of now."""

    def position(self) -> NodePosition:
        """As of now; costs next to nothing where this node leads."""

    def faults(self) -> list[str]:
        """The faults of this node that have not stopped it: a sentence each."""

    def stalled_ms(self) -> float:
        """The time for which committed records have been waiting to be applied; 0 when none are."""

    def counters(self) -> Counters:
        """The counts since the process started."""

    def refreshed_counters(self) -> Counters:
        """The same, with what others count brought up to date: for a scrape."""

    def wall_ms(self) -> float:
        """Milliseconds since 1970."""


class CheckpointTaking(Protocol):
    """``controller.background.checkpoint_writer.CheckpointWriter``."""

    #: End offset of the checkpoint that is being written; None while none is.
    writing_offset: int | None

    def take(self, reply: Reply[TakenCheckpoint]) -> None:
        """Write one now.

        Raises:
            ApiError: none can be, as things are.
        """


@dataclass(frozen=True, slots=True)
class Peer:
    """Another controller, or this one."""

    node_id: int
    #: Base URL of its HTTP API, without a slash at the end.
    url: str


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """See ``HttpSettings`` and ``LimitSettings``."""

    body_bytes_max: int
    bodies_bytes_max: int
    request_timeout_ms: int
    heartbeat_deadline_ms: int
    read_timeout_ms: int
    forward_timeout_ms: int
    chunk_bytes_max: int
    connections_max: int
    connections_per_address_max: int
    connections_per_second_max: int
    quota_burst_seconds: int
    head_timeout_ms: int
    #: Requests of one kind that a standby passes on at once, each on a connection of its own: a busy active controller
    #: answers some thousand a second, and takes so many connections at any time.
    forwarded_at_once: int = 64
    #: Requests of one kind that wait until they are passed on, each with its body.
    forward_waiting_max: int = 4_096


class RequestTraces(Protocol):
    """``controller.process.tracing.otel``."""

    def begin(self, parent: str) -> Marks:
        """A request has come. ``parent``: the `traceparent` that it brought; empty: none."""

    def end(self, marks: Marks, route: str, status: int, request_id: str) -> None:
        """It was answered."""


@dataclass(frozen=True, slots=True)
class Node:
    """Everything handlers work on."""

    cluster_id: str
    #: By node id, this node included.
    peers: Mapping[int, Peer]
    controller: Controller
    operations: Operations
    cluster: Cluster
    feed: MetadataFeed
    checkpoints: Checkpoints
    checkpoint_taking: CheckpointTaking
    past: PastReads
    counts: CountedImages
    search: PartitionSearch
    broker_reports: BrokerReports
    digests: StateDigests
    limits: NodeLimits
    #: What its decisions depend on, and so its answers.
    config: ControllerConfig
    absences: BrokerAbsences
    additions: ReplicaAdditions
    turns: AnswerTurns = field(default_factory=AnswerTurns)
    read_turns: ReadTurns = field(default_factory=ReadTurns)
    audit: AuditReading = field(default_factory=AuditReading)
    refusals: Refusals = field(default_factory=Refusals)
    reads: Reads = field(default_factory=Reads)
    #: Who may ask; by default whoever reaches the port may do everything (loopback only).
    access: AccessControl = field(default_factory=lambda: AccessControl.by_secret(None))
    #: With which it asks its peers over TLS.
    tls: TlsContexts | None = None
    #: None: requests are not traced.
    traces: RequestTraces | None = None

    @property
    def node_id(self) -> int:
        """This node."""
        return self.controller.node_id
