"""Directories of replicas (Kafka's API 73, AssignReplicasToDirs)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.types import ITEMS_MAX, BrokerIdField, Int64, Message, PartitionIdField, UuidField
from quorate.metadata_log.errors import ErrorCode

#: Of one broker.
_DIRECTORIES_MAX = 1_000


class ReplicaInDirectory(Message):
    """A partition of which the broker holds a replica."""

    partition_index: PartitionIdField


class TopicInDirectory(Message):
    """Partitions of one topic."""

    topic_id: UuidField
    partitions: Annotated[list[ReplicaInDirectory], Field(max_length=ITEMS_MAX)]


class DirectoryReplicas(Message):
    """The replicas in one directory."""

    id: UuidField
    topics: Annotated[list[TopicInDirectory], Field(max_length=ITEMS_MAX)]


class AssignReplicasToDirsRequest(Message):
    """A broker says where replicas lie."""

    broker_id: BrokerIdField
    broker_epoch: Int64
    directories: Annotated[list[DirectoryReplicas], Field(max_length=_DIRECTORIES_MAX)]


class AssignedPartition(Message):
    """Whether it was noted."""

    partition_index: PartitionIdField
    error_code: ErrorCode = Field(default=ErrorCode.NONE, strict=False)


class AssignedTopic(Message):
    """Partitions of one topic."""

    topic_id: UuidField
    partitions: list[AssignedPartition]


class AssignedDirectory(Message):
    """One directory of the request."""

    id: UuidField
    topics: list[AssignedTopic]


class AssignReplicasToDirsResponse(Message):
    """In the order of the request."""

    directories: list[AssignedDirectory]
