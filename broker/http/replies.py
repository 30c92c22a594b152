"""The replies of a broker process over HTTP: its own state, and the cluster as its image has it.

What a controller answers in the same words (a digest, an error, a described topic) is the controllers' own model. Every
field is always present, null where nothing is known.
"""

from __future__ import annotations

from pydantic import Field

from quorate.controller.api.models import HttpModel
from quorate.controller.protocol import DescribedTopic, UuidField

# --- parameters --------------------------------------------------------------------------------------


class TopicPageParameters(HttpModel):
    """A page of the topics, in the order of their names."""

    prefix: str = Field(default="", max_length=249)
    """Only names that begin so."""
    after: str = Field(default="", max_length=249)
    """Only names greater than this: the `next_after` of the page before."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Most topics in the answer."""


# --- this process ------------------------------------------------------------------------------------


class PlayedBrokerReply(HttpModel):
    """One broker that this process plays."""

    broker_id: int
    state: str
    """registering, catching up, fenced, running, controlled shutdown, stopped, failed"""
    broker_epoch: int | None
    is_ready: bool
    """It runs, and the log shows this registration unfenced."""
    trouble: str | None
    """Why it failed, or what its last request met."""


class FollowingReply(HttpModel):
    """The state of following the metadata log."""

    controller: str
    """URL of the controller whose feed is followed now."""
    leader_id: int | None
    """The active controller, as that one knows."""
    epoch: int | None
    applied_offset: int
    """(Exclusive) end of what the image contains."""
    high_watermark: int | None
    """(Exclusive) end of what is committed, as that controller last said."""
    lag_records: int | None
    is_caught_up: bool
    trouble: str | None
    """The last failure, while it lasts."""


class PublisherReply(HttpModel):
    """One publisher."""

    name: str
    errors: int
    """Calls that raised, ever."""
    missed_updates: int
    """Updates that it failed to take, in a row; 0: it is up to date."""


class ReplicaManagerReply(HttpModel):
    """The replica manager, which keeps the ISRs of the partitions that are led here."""

    moves_data: bool
    """False: a rehearsal."""
    notice: str
    """What the ISRs rest on."""
    outside: int
    """Replicas of partitions led here that are outside the ISR."""
    copying: int | None
    """Replicas here that do not have what their leader has; null: it is not known."""
    requests: int
    answers: dict[str, int]
    """Partitions answered, by Kafka's name of the error; NONE: the ISR was changed."""


class ProcessReply(HttpModel):
    """This process."""

    cluster_id: str
    is_ready: bool
    """Whether every broker here is."""
    brokers: list[PlayedBrokerReply]
    following: FollowingReply
    publishers: list[PublisherReply]
    replica_manager: ReplicaManagerReply


class RehearsalPace(HttpModel):
    """The pace at which each replica of this process copies; no data are moved."""

    copy_bytes_per_s: int = Field(ge=0, le=2**60)
    """0: no limit."""
    is_stalled: bool = False
    """Nothing is copied, and nothing said to leaders, as by a process whose disk hangs."""


class DirectoryFailure(HttpModel):
    """A log directory of a broker is to fail."""

    directory: UuidField | None = None
    """Its id; null: the first one that has not failed."""


class Cordoned(HttpModel):
    """The log directories of a broker that take no new replicas."""

    directories: list[UuidField] = Field(max_length=1_000)
    """Ids: all that shall be cordoned; those that are not named are open."""


class DirectoriesReply(HttpModel):
    """Log directories of a broker of this process."""

    broker_id: int
    directories: list[UuidField]
    """Those that it began with."""
    failed: list[UuidField]
    """Those of them that failed since."""
    cordoned: list[UuidField]
    """Those of them that take no new replicas."""


class LivenessReply(HttpModel):
    """Whether it is worth keeping this process."""

    ok: bool


class ReadinessReply(HttpModel):
    """Whether every broker of this process does its part."""

    ok: bool
    brokers: list[PlayedBrokerReply]


# --- the image ---------------------------------------------------------------------------------------


class RegistrationReply(HttpModel):
    """A registered broker, as the image has it."""

    broker_id: int
    broker_epoch: int
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    replicas: int
    """Partitions that have it among their replicas."""
    in_sync: int
    leaders: int


class PartitionCountsReply(HttpModel):
    """Partitions by condition; one partition may be in several."""

    total: int
    offline: int
    """Without a leader."""
    under_replicated: int
    """With fewer in the ISR than replicas."""
    reassigning: int
    with_elr: int
    """With eligible leader replicas outside the ISR."""
    without_preferred_leader: int
    """Led by another than the first replica."""


class ImageReply(HttpModel):
    """The image in a few numbers."""

    cluster_id: str
    state_offset: int
    """Offset at which all of this is true."""
    epoch: int
    metadata_version: int
    features: dict[str, int]
    brokers: list[RegistrationReply]
    topics: int
    partitions: PartitionCountsReply


class ImageTopicSummary(HttpModel):
    """One topic in a list."""

    name: str
    topic_id: str
    """22 characters, as Kafka prints it."""
    partitions: int


class ImageTopicsReply(HttpModel):
    """A page of topics."""

    state_offset: int
    topics: list[ImageTopicSummary]
    next_after: str | None
    """`after` for the next page; null at the end."""


class ImageTopicReply(HttpModel):
    """One topic."""

    state_offset: int
    topic: DescribedTopic
