"""Replies about the cluster as a whole: what `GET` answers with. One topic or partition: `controller.protocol`.

Every field is always present, null where the answering node does not know: lags and sessions of others are known to the
active controller only.
"""

from __future__ import annotations

from typing import Literal

from quorate.controller.api.models import HttpModel
from quorate.controller.protocol.brokers import Listener, SupportedFeature
from quorate.controller.protocol.topics import DescribedTopic, TopicConfig
from quorate.controller.protocol.types import UuidField
from quorate.snapshots.views.state_names import PartitionState, ReplicaState

VoterRole = Literal["active", "standby", "non-voter", "unreachable", "unknown"]
BrokerStateName = Literal["active", "fenced", "controlled-shutdown"]


class PartitionCounts(HttpModel):
    """Partitions by condition; one partition may be in several."""

    total: int = 0
    offline: int = 0
    """Without a leader."""
    under_replicated: int = 0
    """With a replica outside the ISR that is not only being added."""
    under_min_isr: int = 0
    """With fewer in the ISR than `min.insync.replicas` (or the number of replicas, if that is less)."""
    at_min_isr: int = 0
    """With just so many: one less in the ISR, and writes with `acks=all` are refused."""
    without_preferred_leader: int = 0
    """Led by another than the first replica, or by none."""
    reassigning: int = 0
    """With an open reassignment."""


class BrokerPartitionCounts(HttpModel):
    """Replicas on one broker, and partitions with a replica there by condition; one partition may be in several."""

    replicas: int = 0
    leaders: int = 0
    """Partitions that it leads."""
    offline_replicas: int = 0
    """Of its replicas those that are offline: the broker is down, or their directory is."""
    offline: int = 0
    """Partitions without a leader."""
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0


class ElectionsReply(HttpModel):
    """Partitions that got a leader that was not in sync, by elections of the answering node since its process started.

    The state does not remember them: it forgets how a leader came to lead when the next replica is in sync.
    """

    from_eligible: int = 0
    """By an eligible replica that was not in sync: it has everything that was acknowledged."""
    last_known: int = 0
    """By their last leader, back after a crash, as nobody was in sync or eligible: what it had not flushed is lost."""
    unclean: int = 0
    """By any other replica: what it had not copied is lost."""


class StatesReply(HttpModel):
    """Partitions and replicas by the state that Kafka's older controller would have them in."""

    partitions: dict[PartitionState, int]
    """NewPartition, OnlinePartition and OfflinePartition."""
    replicas: dict[ReplicaState, int]
    """NewReplica, OnlineReplica and OfflineReplica."""


class VoterReply(HttpModel):
    """One controller of the quorum."""

    node_id: int
    http: str
    """Base URL of its HTTP API; empty where only a log tells of it."""
    role: VoterRole
    """As the answering node sees it; `non-voter`: it lost its memory and does not vote until it has caught up."""
    log_end_offset: int | None
    """End of what is durable there; null where nobody has heard of it since the active controller was elected."""
    lag_records: int | None
    """Records that the active controller has and this one has not made durable; null as before."""
    last_contact_ms: int | None
    """Time since the active controller last heard of it."""
    directory_id: UuidField | None
    """Its metadata directory, as the log says; null with static voters."""
    last_caught_up_ms: int | None
    """Time since it last had everything that the active controller had."""
    vote_waits_for: list[int]
    """Of a `non-voter`: controllers that must answer the active one before it may vote. None: it is catching up."""


class QuorumReply(HttpModel):
    """Agreement, as one node sees it."""

    observed_by: int
    """The node that answers."""
    is_past: bool
    """Whether it is about a state that was asked for: a log tells who was active, and what it does not hold is null."""
    is_active: bool
    """Whether that node is the active controller."""
    active_id: int | None
    epoch: int
    high_watermark: int
    log_start_offset: int | None
    log_end_offset: int | None
    applied_offset: int
    """End of what the node's state contains."""
    generation: int | None
    """Of the quorum: 0, or a number that grows each time that it is rebuilt; no log tells it."""
    voters: list[VoterReply]


class ControllerReply(HttpModel):
    """One controller: of the quorum, or registered by one that was."""

    id: int
    is_voter: bool
    """Whether it belongs to the quorum now."""
    is_registered: bool
    """Whether the log has a registration of it; feature levels are not raised while one of the quorum has none."""
    incarnation_id: UuidField | None
    """Of its process."""
    listeners: list[Listener]
    features: list[SupportedFeature]
    """The levels it can lead at."""


class ControllersReply(HttpModel):
    """All controllers, by id."""

    state_offset: int
    controllers: list[ControllerReply]


class BrokerEndpointReply(HttpModel):
    """An address of a broker."""

    name: str
    host: str
    port: int


class BrokerReply(HttpModel):
    """One registered broker."""

    id: int
    rack: str | None
    state: BrokerStateName
    epoch: int
    incarnation_id: UuidField
    listeners: list[BrokerEndpointReply]
    directories: list[UuidField]
    cordoned_directories: list[UuidField]
    applied_offset: int | None
    """End of what its metadata contains, from its last heartbeat."""
    lag_records: int | None
    """Records committed and not yet in its metadata."""
    last_heartbeat_ms: int | None
    """Time since its last heartbeat."""
    partitions: BrokerPartitionCounts = BrokerPartitionCounts()


class BrokersReply(HttpModel):
    """All brokers, by id."""

    brokers: list[BrokerReply]


class ClusterReply(HttpModel):
    """The cluster in a few numbers."""

    cluster_id: str
    observed_by: int
    active_id: int | None
    epoch: int
    state_offset: int
    """Offset at which all of this is true."""
    metadata_version: int
    features: dict[str, int]
    controllers: list[int]
    brokers: list[int]
    topics: int
    partitions: PartitionCounts
    next_producer_id: int
    """First producer id that no broker was given yet."""


class DigestReply(HttpModel):
    """Digest of the state at an offset: equal on every node."""

    state_offset: int
    digest: str
    """64 hexadecimal digits."""
    form: int
    """Of the digest: those of different forms say nothing about each other."""


class TopicSummary(HttpModel):
    """One topic in a list."""

    name: str
    topic_id: UuidField
    partitions: int
    replication_factor: int
    """Replicas of its first partition; 0 where it has none."""
    matching_partitions: int
    """Partitions that fit what was asked for; all of them where a partition's state was not asked about."""
    configs: list[TopicConfig]
    """The topic's own dynamic configs; the value of one that Kafka does not know, and that may be a secret, is null."""


class TopicsReply(HttpModel):
    """A page of topics."""

    state_offset: int
    matching: int
    """Topics that fit, on all pages."""
    topics: list[TopicSummary]
    next_after: str | None
    """`after` for the next page; null at the end."""
    shown_to: str | None = None
    """The principal that is shown only topics that it may describe; null: all are shown, whoever asks."""


class PartitionsReply(HttpModel):
    """A page of partitions."""

    state_offset: int
    matching: int
    """Partitions that fit, on all pages."""
    topics: list[DescribedTopic]
    """By name, each with those of its partitions that fit."""
    next_after: str | None
    """`after` for the next page, as `orders-17`; null at the end."""
    shown_to: str | None = None
    """The principal that is shown only topics that it may describe; null: all are shown, whoever asks."""


class TopicReply(HttpModel):
    """One topic."""

    state_offset: int
    topic: DescribedTopic
    configs: list[TopicConfig]
    """The topic's own dynamic configs; the value of one that Kafka does not know, and that may be a secret, is null."""
