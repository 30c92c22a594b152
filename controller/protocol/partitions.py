"""Partitions: ISR changes, reassignments, elections (Kafka's APIs 56, 45, 46, 43)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quorate.controller.protocol.types import (
    ITEMS_MAX,
    BrokerIdField,
    BrokerList,
    Int8,
    Int32,
    Int64,
    ItemResult,
    Message,
    PartitionIdField,
    Text,
    UuidField,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX


class BrokerState(Message):
    """A member of a new ISR."""

    broker_id: BrokerIdField
    #: Epoch under which the leader knows it; -1 = not said.
    broker_epoch: Int64 = -1


class AlterPartitionData(Message):
    """The ISR that a leader asks for, and the state it asks from."""

    partition_index: PartitionIdField
    leader_epoch: Int32
    partition_epoch: Int32
    #: 0 = recovered, 1 = recovering.
    leader_recovery_state: Int8 = 0
    new_isr_with_epochs: Annotated[list[BrokerState], Field(max_length=PARTITION_SLOTS_MAX)]


class AlterPartitionTopic(Message):
    """Partitions of one topic."""

    topic_id: UuidField
    partitions: Annotated[list[AlterPartitionData], Field(max_length=ITEMS_MAX)]


class AlterPartitionRequest(Message):
    """A leader asks for other ISRs."""

    broker_id: BrokerIdField
    broker_epoch: Int64
    topics: Annotated[list[AlterPartitionTopic], Field(max_length=ITEMS_MAX)]


class AlterPartitionResult(Message):
    """The state of one partition after the change, or why there is none."""

    partition_index: PartitionIdField
    error_code: ErrorCode = Field(default=ErrorCode.NONE, strict=False)
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    isr: list[Int32] = Field(default_factory=list)
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = -1


class AlterPartitionTopicResult(Message):
    """Partitions of one topic."""

    topic_id: UuidField
    partitions: list[AlterPartitionResult]


class AlterPartitionResponse(Message):
    """In the order of the request."""

    topics: list[AlterPartitionTopicResult]


class ReassignablePartition(Message):
    """A partition and the brokers that it should go to."""

    partition_index: PartitionIdField
    #: None = cancel the reassignment that is open.
    replicas: BrokerList | None


class ReassignableTopic(Message):
    """Partitions of one topic."""

    name: Text
    partitions: Annotated[list[ReassignablePartition], Field(max_length=ITEMS_MAX)]


class AlterPartitionReassignmentsRequest(Message):
    """Reassignments to start or to cancel."""

    topics: Annotated[list[ReassignableTopic], Field(max_length=ITEMS_MAX)]
    allow_replication_factor_change: bool = True


class ReassignablePartitionResult(ItemResult):
    """Whether the reassignment was started or cancelled."""

    partition_index: PartitionIdField


class ReassignableTopicResult(Message):
    """Partitions of one topic."""

    name: str
    partitions: list[ReassignablePartitionResult]


class AlterPartitionReassignmentsResponse(Message):
    """In the order of the request."""

    responses: list[ReassignableTopicResult]


class ListPartitionReassignmentsTopic(Message):
    """Partitions of one topic to look at."""

    name: Text
    partition_indexes: Annotated[list[PartitionIdField], Field(max_length=ITEMS_MAX)]


class ListPartitionReassignmentsRequest(Message):
    """None = all topics."""

    topics: Annotated[list[ListPartitionReassignmentsTopic], Field(max_length=ITEMS_MAX)] | None = None


class OngoingPartitionReassignment(Message):
    """A partition on its way."""

    partition_index: PartitionIdField
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]


class OngoingTopicReassignment(Message):
    """Partitions of one topic."""

    name: str
    partitions: list[OngoingPartitionReassignment]


class ListPartitionReassignmentsResponse(Message):
    """Topics by name."""

    topics: list[OngoingTopicReassignment]


class ElectionPartitions(Message):
    """Partitions of one topic."""

    topic: Text
    partitions: Annotated[list[PartitionIdField], Field(max_length=ITEMS_MAX)]


class ElectLeadersRequest(Message):
    """Elections to hold now."""

    election_type: Literal["PREFERRED", "UNCLEAN"]
    #: None = all partitions that need one.
    topic_partitions: Annotated[list[ElectionPartitions], Field(max_length=ITEMS_MAX)] | None = None


class ElectionPartitionResult(ItemResult):
    """Outcome for one partition."""

    partition_id: PartitionIdField


class ElectionTopicResult(Message):
    """Partitions of one topic."""

    topic: str
    partition_results: list[ElectionPartitionResult]


class ElectLeadersResponse(Message):
    """In the order of the request; for all partitions by topic name, without those that needed none."""

    replica_election_results: list[ElectionTopicResult]
