"""Topics: creation, more partitions, deletion, description (Kafka's APIs 19, 20, 37, 75)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.configs import CreatedTopicConfig
from quorate.controller.protocol.types import (
    ITEMS_MAX,
    BrokerList,
    Int8,
    Int16,
    Int32,
    ItemResult,
    Message,
    PartitionIdField,
    Text,
    UuidField,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.views.state_names import PartitionState, ReplicaState

_CONFIGS_MAX = 1_000


class ReplicaAssignment(Message):
    """The brokers that hold one partition; the first is the preferred leader."""

    partition_index: PartitionIdField
    broker_ids: BrokerList


class TopicConfig(Message):
    """A config that the topic starts with."""

    name: Text
    value: Text | None = None


class CreatableTopic(Message):
    """One topic to create."""

    name: Text
    #: -1 = the default, or given by the assignments.
    num_partitions: Int32 = -1
    replication_factor: Int16 = -1
    assignments: Annotated[list[ReplicaAssignment], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    configs: Annotated[list[TopicConfig], Field(max_length=_CONFIGS_MAX)] = Field(default_factory=list)


class CreateTopicsRequest(Message):
    """Topics to create, all in one batch; each may fail for itself."""

    topics: Annotated[list[CreatableTopic], Field(max_length=ITEMS_MAX)]
    #: Answer as if, and write nothing.
    validate_only: bool = False


class CreatableTopicResult(ItemResult):
    """A topic as it was created, or why not."""

    name: str
    #: None where it was not created, and with ``validate_only``: then no topic has it.
    topic_id: UuidField | None = None
    num_partitions: Int32 = -1
    replication_factor: Int16 = -1
    #: TOPIC_AUTHORIZATION_FAILED: whoever created it may not be told its configs, partitions and replication factor.
    topic_config_error_code: ErrorCode = Field(default=ErrorCode.NONE, strict=False)
    #: All configs of the topic as they hold, by name.
    configs: list[CreatedTopicConfig] = Field(default_factory=list)


class CreateTopicsResponse(Message):
    """In the order of the request."""

    topics: list[CreatableTopicResult]
    #: Topics were refused with THROTTLING_QUOTA_EXCEEDED, and for so long more of them will be; 0: none was.
    throttle_time_ms: Int32 = 0


class CreatePartitionsTopic(Message):
    """A topic that is to grow to ``count`` partitions."""

    name: Text
    count: Int32
    #: Replicas of each new partition; None = placed.
    assignments: Annotated[list[BrokerList], Field(max_length=ITEMS_MAX)] | None = None


class CreatePartitionsRequest(Message):
    """Topics that are to grow."""

    topics: Annotated[list[CreatePartitionsTopic], Field(max_length=ITEMS_MAX)]
    validate_only: bool = False


class CreatePartitionsTopicResult(ItemResult):
    """Whether a topic grew."""

    name: str


class CreatePartitionsResponse(Message):
    """In the order of the request."""

    results: list[CreatePartitionsTopicResult]
    #: As in CreateTopicsResponse.
    throttle_time_ms: Int32 = 0


class DeleteTopicsRequest(Message):
    """Topics to delete, by id."""

    topic_ids: Annotated[list[UuidField], Field(max_length=ITEMS_MAX)]


class DeletableTopicResult(ItemResult):
    """Whether a topic was deleted."""

    topic_id: UuidField
    #: None where the id is unknown.
    name: str | None = None


class DeleteTopicsResponse(Message):
    """In the order of the request."""

    responses: list[DeletableTopicResult]
    #: As in CreateTopicsResponse.
    throttle_time_ms: Int32 = 0


class DescribedPartition(Message):
    """The state of one partition."""

    partition_index: PartitionIdField
    #: As Kafka's older controller called it; see docs/kafka-map.md.
    state: PartitionState
    leader_id: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    leader_recovery_state: Int8
    replica_nodes: list[Int32]
    #: One for each of them, in their order.
    replica_states: list[ReplicaState]
    isr_nodes: list[Int32]
    eligible_leader_replicas: list[Int32]
    last_known_elr: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]
    #: Replicas on brokers that are fenced or unknown, or in a directory that is not online.
    offline_replicas: list[Int32]
    directories: list[UuidField]


class DescribedTopic(ItemResult):
    """One topic and its partitions."""

    name: str | None
    topic_id: UuidField
    partitions: list[DescribedPartition] = Field(default_factory=list)
