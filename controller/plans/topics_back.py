"""The way back from the creation and the deletion of topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.plans.partition_facts import partition_count
from quorate.controller.plans.way_back_parts import FoundWays, RequestStates
from quorate.controller.protocol import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ReplicaAssignment,
    TopicConfig,
)
from quorate.controller.protocol.labels import LABEL_ITEMS_MAX, AlterLabelsRequest, LabelEntry
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE, Topic


def topics_back(states: RequestStates, end: MetadataImage, found: FoundWays) -> None:
    """Delete what was created, and create what was deleted as it was: empty.

    ``end``: the state behind the last of the requests that are taken back together, of which this is one.
    """
    _delete_created(states, end, found)
    _create_deleted(states, found)


def _delete_created(states: RequestStates, end: MetadataImage, found: FoundWays) -> None:
    ids = []
    for topic in states.created:
        since = _changed_since(end, states.now, topic)
        if since:
            found.since.append(since)
            continue
        ids.append(topic.id)
        found.lost.append(f"what was written to topic {topic.name} goes with it")
    if ids:
        found.changes.append(PlannedChange(delete_topics=DeleteTopicsRequest(topic_ids=ids)))


def _changed_since(end: MetadataImage, now: MetadataImage, topic: Topic) -> str:
    """The sentence about a topic that was made and that somebody has changed; empty: nobody has."""
    if topic.id not in now.topics.by_id:
        return f"topic {topic.name} is gone"
    then_count, count = (partition_count(image, topic.id) for image in (end, now))
    if count != then_count:
        return f"topic {topic.name} has {count} partitions, not {then_count}"
    if end.configs.of(TOPIC_RESOURCE, topic.name) != now.configs.of(TOPIC_RESOURCE, topic.name):
        return f"topic {topic.name} has other configs"
    if [*_labels(end, topic)] != [*_labels(now, topic)]:
        return f"topic {topic.name} has other labels"
    return ""


def _create_deleted(states: RequestStates, found: FoundWays) -> None:
    topics: list[CreatableTopic] = []
    labels: list[LabelEntry] = []
    for topic in states.deleted:
        if topic.name in states.now.topics.by_name:
            found.since.append(f"there is another topic {topic.name}")
            continue
        created = _as_it_was(states, topic, found)
        if _record_count(created) > RECORDS_PER_OPERATION_MAX:
            # It grew, by requests of their own: one that makes all of it at once would be refused.
            found.lost.append(
                f"topic {topic.name}: to create it takes {_record_count(created)} records, "
                f"and one operation may write {RECORDS_PER_OPERATION_MAX}"
            )
            continue
        topics.append(created)
        labels += _labels(states.before, topic)
        found.lost.append(f"the data of topic {topic.name}: it comes back empty, and under another id")
    for group in _at_once(topics):
        found.changes.append(PlannedChange(create_topics=CreateTopicsRequest(topics=group)))
    for first in range(0, len(labels), LABEL_ITEMS_MAX):
        request = AlterLabelsRequest(changes=labels[first : first + LABEL_ITEMS_MAX])
        found.changes.append(PlannedChange(alter_labels=request))


def _record_count(topic: CreatableTopic) -> int:
    """The number of records that its creation writes: its own, one for each config, and one for each partition."""
    return 1 + len(topic.configs) + (len(topic.assignments) or topic.num_partitions)


def _at_once(topics: Iterable[CreatableTopic]) -> Iterator[list[CreatableTopic]]:
    """The topics in their order, in groups that one operation may write."""
    group: list[CreatableTopic] = []
    left = RECORDS_PER_OPERATION_MAX
    for topic in topics:
        count = _record_count(topic)
        if count > left:
            yield group
            group, left = [], RECORDS_PER_OPERATION_MAX
        group.append(topic)
        left -= count
    if group:
        yield group


def _as_it_was(states: RequestStates, topic: Topic, found: FoundWays) -> CreatableTopic:
    """The topic with its configs, on the brokers that it was on if that can be."""
    configs = sorted(states.before.configs.of(TOPIC_RESOURCE, topic.name).items())
    partitions = list(states.before.partitions.partitions_of(topic.id))
    lists = {number: list(one.assignment.original_replicas) for number, one in partitions}
    wanted = CreatableTopic(name=topic.name, configs=[TopicConfig(name=name, value=value) for name, value in configs])
    problem = _problem(states.now, list(lists.values()))
    if problem:
        found.lost.append(f"the places of topic {topic.name}'s replicas: {problem}")
        factor = max(map(len, lists.values()))
        return wanted.model_copy(update={"num_partitions": len(lists), "replication_factor": factor})
    assignments = [ReplicaAssignment(partition_index=number, broker_ids=ids) for number, ids in lists.items()]
    return wanted.model_copy(update={"assignments": assignments})


def _problem(now: MetadataImage, lists: list[list[int]]) -> str:
    """The reason why partitions cannot be created on these brokers; empty: they can."""
    missing = {broker for ids in lists for broker in ids if broker not in now.cluster.brokers}
    if missing:
        return f"broker {', '.join(map(str, sorted(missing)))} is not registered"
    if len({len(ids) for ids in lists}) > 1:
        return "its partitions had different numbers of them"
    if any(not any(now.cluster.brokers[broker].is_active for broker in ids) for ids in lists):
        return "no broker of some partition runs"
    return ""


def _labels(image: MetadataImage, topic: Topic) -> Iterator[LabelEntry]:
    numbers = (number for number, _ in image.partitions.partitions_of(topic.id))
    for resource in (f"topic:{topic.name}", *(f"partition:{topic.name}-{number}" for number in numbers)):
        for key, value in sorted(image.labels.of(resource).items()):
            yield LabelEntry(resource=resource, key=key, value=value)
