"""Topics: creation, growth, deletion, description (the first half of Kafka's ``ReplicationControlManager``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from quorate.controller.configs.alter_configs import new_topic_configs
from quorate.controller.configs.description import configs_of_new_topic
from quorate.controller.configs.labels import labels_gone_with_topic
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.policies import NewTopic
from quorate.controller.decisions.random_source import RandomSource
from quorate.controller.protocol import (
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorate.controller.protocol.limits import check_record_count
from quorate.controller.protocol.topic_names import METADATA_TOPIC, name_problem
from quorate.controller.quotas.mutations import MutationQuota
from quorate.controller.topics.assignments import (
    NewPartitions,
    check_assignment,
    check_has_active,
    partition_items,
)
from quorate.controller.topics.broker_choices import broker_choices
from quorate.controller.topics.name_collisions import colliding_topic
from quorate.controller.topics.placement import Placement, ReplicaPlacer, work_out_all
from quorate.controller.topics.room import Room
from quorate.controller.topics.timeline_order import first_listed_partition
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.metadata_log.records.records import RemoveTopicRecord, TopicRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic


@dataclass(frozen=True, slots=True)
class _Creation:
    """The facts of one topic's creation."""

    records: list[BatchItem]
    topic_id: Uuid
    placement: Placement
    result: CreatableTopicResult


# --- creation ----------------------------------------------------------------------------------------


def decide_create_topics(
    image: MetadataImage,
    config: ControllerConfig,
    request: CreateTopicsRequest,
    random: RandomSource,
    new_topic_id: Callable[[], Uuid],
    quota: MutationQuota | None = None,
) -> Decision[CreateTopicsResponse]:
    """Create topics, each with its own outcome. ``quota``: of who asks; None: nothing bounds it.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    problems, room = _name_problems(image, request), Room(image, config)
    placer = ReplicaPlacer(broker_choices(image.cluster).racks, random)
    left = RECORDS_PER_OPERATION_MAX
    created: list[_Creation] = []
    results: list[CreatableTopicResult] = []
    for topic in request.topics:
        try:
            if topic.name in problems:
                raise problems[topic.name]
            creation = _create(image, config, topic, placer, left, new_topic_id)
            _count(room, quota, 1, creation.placement.partition_count)
        except LimitExceeded:
            raise
        except ApiError as error:
            results.append(CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message))
            continue
        left -= len(creation.records) + creation.placement.partition_count
        created.append(creation)
        result = creation.result
        results.append(result.model_copy(update={"topic_id": None}) if request.validate_only else result)
    if request.validate_only:
        return Decision((), CreateTopicsResponse(topics=results, throttle_time_ms=_throttle_time_ms(quota)))
    records: list[BatchItem] = [record for creation in created for record in creation.records]
    placed = work_out_all([creation.placement for creation in created])
    partitions = [NewPartitions(made.topic_id, 0, replicas) for made, replicas in zip(created, placed, strict=True)]
    records += partition_items(image, partitions)
    return Decision(records, CreateTopicsResponse(topics=results, throttle_time_ms=_throttle_time_ms(quota)))


def _count(room: Room, quota: MutationQuota | None, topics: int, partitions: int) -> None:
    """Count what is to be created: it is all that may still be refused, and what is refused is not counted."""
    room.check(topics, partitions)
    if quota is not None:
        quota.take(partitions)
    room.take(topics, partitions)


def _throttle_time_ms(quota: MutationQuota | None) -> int:
    return 0 if quota is None else quota.throttle_time_ms


def _name_problems(image: MetadataImage, request: CreateTopicsRequest) -> dict[str, ApiError]:
    """The problems of the names; only topics that exist already can be collided with."""
    counts = Counter(topic.name for topic in request.topics)
    problems: dict[str, ApiError] = {}
    for name, count in counts.items():
        problem = name_problem(name)
        if count > 1:
            problems[name] = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif name == METADATA_TOPIC:
            problem = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            problems[name] = ApiError(ErrorCode.INVALID_REQUEST, problem)
        elif problem is not None:
            problems[name] = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        elif name in image.topics.by_name:
            problems[name] = ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        elif (other := colliding_topic(image.topics.by_name, name)) is not None:
            problem = f"Topic '{name}' collides with existing topic: {other}"
            problems[name] = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    return problems


def _create(
    image: MetadataImage,
    config: ControllerConfig,
    topic: CreatableTopic,
    placer: ReplicaPlacer,
    records_left: int,
    new_topic_id: Callable[[], Uuid],
) -> _Creation:
    records_of_configs = new_topic_configs(image, config, topic.name, topic.configs)
    configs = MappingProxyType({entry.name: entry.value for entry in topic.configs if entry.value is not None})
    if topic.assignments:
        placement = _given_replicas(image, topic)
    else:
        placement = _placed_replicas(config, topic, placer, records_left)
    config.policies.check_topic(partial(_shown, topic, placement, configs))
    topic_id = new_topic_id()
    records: list[BatchItem] = [VersionedRecord(TopicRecord(topic.name, topic_id), 0), *records_of_configs]
    _check_records(len(records) + placement.partition_count, records_left)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=placement.partition_count,
        replication_factor=placement.replication_factor,
        configs=configs_of_new_topic(image, config, configs),
    )
    return _Creation(records, topic_id, placement, result)


def _shown(topic: CreatableTopic, placement: Placement, configs: Mapping[str, str]) -> NewTopic:
    """The topic as a policy sees it."""
    if topic.assignments:
        replicas = {one.partition_index: tuple(one.broker_ids) for one in topic.assignments}
        return NewTopic(topic.name, None, None, MappingProxyType(replicas), configs)
    return NewTopic(topic.name, placement.partition_count, placement.replication_factor, None, configs)


def _check_records(count: int, records_left: int) -> None:
    """Refuse so many more records than the topics before have left. Each partition is one."""
    check_record_count(RECORDS_PER_OPERATION_MAX - records_left + count)


def _given_replicas(image: MetadataImage, topic: CreatableTopic) -> Placement:
    """The replicas that the request assigns, by partition."""
    for value, field in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
        if value != -1:
            problem = f"A manual partition assignment was specified, but {field} was not set to -1."
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    lists: dict[int, list[int]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        partition = assignment.partition_index
        if partition in lists:
            problem = f"Found multiple manual partition assignments for partition {partition}"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        check_assignment(image, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        check_has_active(image, partition, assignment.broker_ids)
        lists[partition] = assignment.broker_ids
    if sorted(lists) != list(range(len(lists))):
        problem = "partitions should be a consecutive 0-based integer sequence"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    replicas = np.array([lists[partition] for partition in range(len(lists))], np.int32)
    return Placement(len(replicas), replicas.shape[1], replicas)


def _placed_replicas(
    config: ControllerConfig, topic: CreatableTopic, placer: ReplicaPlacer, records_left: int
) -> Placement:
    """Replicas chosen by the placer."""
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        problem = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        problem = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, problem)
    count = config.default_num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = config.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    _check_records(count, records_left)
    return _place(placer, count, factor)


def _place(placer: ReplicaPlacer, count: int, factor: int) -> Placement:
    try:
        return placer.choose(count, factor)
    except ApiError as error:
        problem = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, problem) from error


# --- growth ------------------------------------------------------------------------------------------


def decide_create_partitions(
    image: MetadataImage,
    config: ControllerConfig,
    request: CreatePartitionsRequest,
    random: RandomSource,
    quota: MutationQuota | None = None,
) -> Decision[CreatePartitionsResponse]:
    """Let topics grow, each with its own outcome. ``quota``: of who asks; None: nothing bounds it.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    counts, room = Counter(topic.name for topic in request.topics), Room(image, config)
    placer = ReplicaPlacer(broker_choices(image.cluster).racks, random)
    left = RECORDS_PER_OPERATION_MAX
    grown: list[NewPartitions] = []
    results: list[CreatePartitionsTopicResult] = []
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            partitions = _grow(image, topic, placer, left)
            _count(room, quota, 0, len(partitions.replicas))
        except LimitExceeded:
            raise
        except ApiError as error:
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            )
            continue
        left -= len(partitions.replicas)
        grown.append(partitions)
        results.append(CreatePartitionsTopicResult(name=topic.name))
    records = [] if request.validate_only else partition_items(image, grown)
    return Decision(records, CreatePartitionsResponse(results=results, throttle_time_ms=_throttle_time_ms(quota)))


def _grow(
    image: MetadataImage, topic: CreatePartitionsTopic, placer: ReplicaPlacer, records_left: int
) -> NewPartitions:
    known = image.topics.by_name.get(topic.name)
    if known is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    rows = image.partitions.rows_of(known.id)
    present = len(rows)
    if topic.count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        start = f"The topic {topic.name} currently has {present} partition(s)"
        problem = f"{start}; {topic.count} would not be an increase."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, problem)
    added = topic.count - present
    _check_records(added, records_left)
    # Partitions that are being moved have other numbers of replicas for a while; Kafka goes by the first it meets.
    factor = len(image.partitions.partition(rows[first_listed_partition(present)]).replicas)
    if topic.assignments is None:
        (replicas,) = work_out_all([_place(placer, added, factor)])
        return NewPartitions(known.id, present, replicas)
    if len(topic.assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only {len(topic.assignments)} assignment(s) were "
            "specified.",
        )
    for partition, broker_ids in enumerate(topic.assignments, start=present):
        check_assignment(image, broker_ids, factor)
        check_has_active(image, partition, broker_ids)
    return NewPartitions(known.id, present, np.array(topic.assignments, np.int32))


# --- deletion ----------------------------------------------------------------------------------------


def topic_named(image: MetadataImage, name: str) -> Topic:
    """The topic of this name.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def check_deletion_enabled(config: ControllerConfig) -> None:
    """Kafka's ``delete.topic.enable``; it is asked before anybody looks for the topics.

    Raises:
        ApiError: TOPIC_DELETION_DISABLED.
    """
    if not config.topics_can_be_deleted:
        message = "Topic deletion is disabled: by the controllers' setting topics.can_be_deleted."
        raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, message)


def decide_delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, quota: MutationQuota | None = None
) -> Decision[DeleteTopicsResponse]:
    """Delete topics by id, each with its own outcome. A name can be used again at once, under another id.

    ``quota``: of who asks; None: nothing bounds it.
    """
    counts = Counter(request.topic_ids)
    records: list[BatchItem] = []
    has_labels = False
    results: list[DeletableTopicResult] = []
    for topic_id in request.topic_ids:
        topic = image.topics.by_id.get(topic_id)
        if counts[topic_id] > 1:
            code, message = ErrorCode.INVALID_REQUEST, "Duplicate topic id."
        elif topic is None:
            code, message = ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
        elif (refusal := _refusal_of_deletion(image, topic, quota)) is not None:
            code, message = refusal.code, refusal.message
        else:
            labels = labels_gone_with_topic(image, topic)
            has_labels = has_labels or bool(labels)
            records += (*labels, VersionedRecord(RemoveTopicRecord(topic_id), 0))
            results.append(DeletableTopicResult(topic_id=topic_id, name=topic.name))
            continue
        name = None if topic is None or code is ErrorCode.INVALID_REQUEST else topic.name
        results.append(DeletableTopicResult(topic_id=topic_id, name=name, error_code=code, error_message=message))
    # However many labels there are, a topic can be deleted.
    reply = DeleteTopicsResponse(responses=results, throttle_time_ms=_throttle_time_ms(quota))
    return Decision(records, reply, is_internal=has_labels)


def _refusal_of_deletion(image: MetadataImage, topic: Topic, quota: MutationQuota | None) -> ApiError | None:
    try:
        if quota is not None:
            quota.take(len(image.partitions.rows_of(topic.id)))
    except ApiError as error:
        return error
    return None
