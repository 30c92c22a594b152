"""Brokers' reports on replicas of deleted topics, and the view of them for an operator."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from quorate.controller.protocol.types import ITEMS_MAX, BrokerIdField, Int64, Message, PartitionIdField, UuidField
from quorate.snapshots.views.state_names import ReplicaState

#: Deleted topics that one broker reports, and that a controller keeps. A broker that has more says nothing.
UNDELETED_TOPICS_MAX = 1_000
_NAME_MAX = 249

_Partitions = Annotated[list[PartitionIdField], Field(max_length=ITEMS_MAX)]


class UndeletedTopic(Message):
    """Partitions of one deleted topic of which a broker still has the replica."""

    topic_id: UuidField
    #: As it was called; the log may not say so any more.
    name: Annotated[str, Field(max_length=_NAME_MAX)]
    #: On their way.
    deleting: _Partitions = Field(default_factory=list)
    #: The broker cannot delete them now: their directory failed.
    ineligible: _Partitions = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_unique(self) -> Self:
        named = [*self.deleting, *self.ineligible]
        if len(set(named)) != len(named):
            raise ValueError("a partition is named twice")
        return self


class UndeletedReplicas(Message):
    """All replicas of deleted topics that a broker still has; what is not named it has not."""

    #: Last offset of the metadata that this is said of.
    metadata_offset: Int64
    topics: Annotated[list[UndeletedTopic], Field(max_length=UNDELETED_TOPICS_MAX)]

    @model_validator(mode="after")
    def _check_unique(self) -> Self:
        if len({topic.topic_id for topic in self.topics}) != len(self.topics):
            raise ValueError("a topic is named twice")
        return self


class DeletedReplicas(Message):
    """Replicas of one deleted topic on one broker that are in the same state."""

    broker_id: BrokerIdField
    #: ReplicaDeletionStarted, ReplicaDeletionSuccessful or ReplicaDeletionIneligible.
    state: ReplicaState
    partitions: list[PartitionIdField]
    #: What the deletion waits for; null where it need not.
    waits_for: str | None


class DeletedTopic(Message):
    """A topic that is gone from the metadata, and whose replicas are not all known to be gone."""

    topic_id: UuidField
    name: str
    #: Offset of the record that removed it; null where an earlier controller wrote it.
    offset: Int64 | None
    replicas: list[DeletedReplicas]


class DescribeTopicDeletionsResponse(Message):
    """The deletions that the active controller has heard of; others know nothing."""

    #: Whether this is the active controller's answer.
    is_active: bool
    topics: list[DeletedTopic]
    #: Topics dropped from this list because it was full, since the controller became active.
    forgotten: int
