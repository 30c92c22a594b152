"""Labels: what can be set on what, conditions, bounds, and that labels go with what they are on."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.brokers.registration import decide_unregister_broker
from quorate.controller.configs import labels as label_decisions
from quorate.controller.configs.label_rules import LABELS_MAX, LABELS_PER_RESOURCE_MAX, VALUE_BYTES_MAX
from quorate.controller.configs.labels import LabelFilter, decide_alter_labels, describe_labels
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol import DeleteTopicsRequest, UnregisterBrokerRequest
from quorate.controller.protocol.labels import AlterLabelsRequest, AlterLabelsResponse
from quorate.controller.topics.topics import decide_delete_topics
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.image.labels import Label, config_of
from tests.unit.controller.access_stage import AccessStage
from tests.unit.controller.small_cluster import SmallCluster, uuid

KEY = "acme/schema"
Entry = tuple[str, str, str | None]
EXAMPLES = 60
EVERYTHING = LabelFilter()


def request(*changes: Entry, conditions: tuple[Entry, ...] = (), **fields: Any) -> AlterLabelsRequest:
    def made(entries: tuple[Entry, ...]) -> list[dict[str, str | None]]:
        return [{"resource": resource, "key": key, "value": value} for resource, key, value in entries]

    values = {"changes": made(changes), "conditions": made(conditions), **fields}
    return AlterLabelsRequest.model_validate(values)


def alter(
    cluster: SmallCluster, *changes: Entry, conditions: tuple[Entry, ...] = (), **fields: Any
) -> tuple[AlterLabelsResponse, list[Record]]:
    decision = decide_alter_labels(cluster.image, request(*changes, conditions=conditions, **fields))
    return decision.reply, cluster.commit(decision)


def listed(cluster: SmallCluster, wanted: LabelFilter = EVERYTHING, page: int = 1_000) -> list[Entry]:
    found: list[Entry] = []
    after = None
    while True:
        reply = describe_labels(cluster.image, wanted, after, page)
        assert len(reply.labels) <= page
        assert reply.count == cluster.image.labels.count
        found += [(one.resource, one.key, one.value) for one in reply.labels]
        after = reply.next_after
        if after is None:
            return found


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2], [1, 2, 0])
    cluster.create("t-1", [0, 1, 2])
    return cluster


# --- changes -------------------------------------------------------------------------------------------


def test_labels_of_every_kind_are_set_changed_and_removed(cluster: SmallCluster) -> None:
    kinds = ("broker:2", "cluster", "partition:t-1", "partition:t-1-0", "record:routing", "topic:t")
    reply, records = alter(cluster, *((kind, KEY, "1") for kind in kinds))
    assert reply.changed == len(kinds)
    assert records == [ConfigRecord(*config_of(Label(kind, KEY)), "1") for kind in kinds]
    assert listed(cluster) == [(kind, KEY, "1") for kind in kinds]
    reply, records = alter(cluster, ("topic:t", KEY, "2"), ("cluster", KEY, None))
    assert reply.changed == len(records) == 2
    assert listed(cluster)[-1] == ("topic:t", KEY, "2")
    assert cluster.image.labels.count == len(kinds) - 1


def test_what_is_so_already_is_not_written(cluster: SmallCluster) -> None:
    alter(cluster, ("topic:t", KEY, "1"))
    reply, records = alter(cluster, ("topic:t", KEY, "1"), ("topic:none", KEY, None), ("cluster", KEY, None))
    assert (reply.changed, records) == (0, [])


def test_validation_writes_nothing(cluster: SmallCluster) -> None:
    reply, records = alter(cluster, ("topic:t", KEY, "1"), validate_only=True)
    assert (reply.changed, records) == (1, [])


@pytest.mark.parametrize(
    ("entry", "code", "words"),
    [
        (("topic", KEY, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
        (("topic:a/b", KEY, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, "'a/b' contains"),
        (("topic:none", KEY, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic 'none' does not exist"),
        (("partition:t-2", KEY, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition t-2 does not exist"),
        (("partition:none-0", KEY, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition none-0 does not exist"),
        (("partition:t-01", KEY, "1"), ErrorCode.INVALID_REQUEST, "'partition:t-01' can have no labels"),
        (("partition:t", KEY, "1"), ErrorCode.INVALID_REQUEST, "'partition:t' can have no labels"),
        (("partition:t-99999999999", KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("broker:7", KEY, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED, "id 7"),
        (("broker:-7", KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("broker:2147483648", KEY, "1"), ErrorCode.INVALID_REQUEST, "from 0 to 2147483647"),
        (("broker:\u0663", KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("cluster:", KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("record:", KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("record:a b", KEY, "1"), ErrorCode.INVALID_REQUEST, "'record:a b' can have no labels"),
        (("shard:1", KEY, "1"), ErrorCode.INVALID_REQUEST, "none of cluster, topic:NAME"),
        (("record:" + "x" * 129, KEY, "1"), ErrorCode.INVALID_REQUEST, "can have no labels"),
        (("cluster", "schema", "1"), ErrorCode.INVALID_REQUEST, "'schema' is no key of a label"),
        (("cluster", "Acme/schema", "1"), ErrorCode.INVALID_REQUEST, "NAMESPACE has 1 to 63"),
        (("cluster", "a" * 64 + "/x", "1"), ErrorCode.INVALID_REQUEST, "NAMESPACE has 1 to 63"),
        (("cluster", "acme/a/b", "1"), ErrorCode.INVALID_REQUEST, "no key of a label"),
        (("cluster", "acme/" + "x" * 129, "1"), ErrorCode.INVALID_REQUEST, "NAME has 1 to 128"),
        (("cluster", KEY, "é" * 2_049), ErrorCode.INVALID_REQUEST, "has 4098 bytes in UTF-8; 4096 is the most"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_and_the_rule(
    cluster: SmallCluster, entry: Entry, code: ErrorCode, words: str
) -> None:
    before = cluster.image
    with pytest.raises(ApiError) as refused:
        alter(cluster, ("cluster", "acme/first", "1"), entry)
    assert refused.value.code is code
    assert words in refused.value.message
    assert cluster.image is before


def test_longest_of_everything_is_taken(cluster: SmallCluster) -> None:
    key = "a" * 63 + "/" + "x" * 128
    alter(cluster, ("record:" + "x" * 128, key, "é" * 2_048), ("cluster", "0/0", ""))
    assert listed(cluster) == [("cluster", "0/0", ""), ("record:" + "x" * 128, key, "é" * (VALUE_BYTES_MAX // 2))]


def test_label_is_named_once(cluster: SmallCluster) -> None:
    twice = (("cluster", KEY, "1"), ("cluster", KEY, "2"))
    with pytest.raises(ApiError, match="Label 'acme/schema' of 'cluster' is named by 2 changes"):
        alter(cluster, *twice)
    with pytest.raises(ApiError, match="by 2 conditions"):
        alter(cluster, conditions=twice)


# --- conditions ----------------------------------------------------------------------------------------


def test_change_is_made_where_all_conditions_hold(cluster: SmallCluster) -> None:
    alter(cluster, ("record:lease", "acme/owner", "me"), conditions=(("record:lease", "acme/owner", None),))
    alter(
        cluster,
        ("record:lease", "acme/owner", "you"),
        ("topic:t", KEY, "1"),
        conditions=(("record:lease", "acme/owner", "me"), ("topic:t", KEY, None)),
    )
    assert listed(cluster) == [("record:lease", "acme/owner", "you"), ("topic:t", KEY, "1")]


@pytest.mark.parametrize(
    ("present", "expected", "message"),
    [
        ("8", "7", "Label acme/schema of topic:t is '8', and must be '7' for this change."),
        (None, "7", "Label acme/schema of topic:t is not there, and must be '7' for this change."),
        ("", None, "Label acme/schema of topic:t is '', and must not be there for this change."),
    ],
)
def test_condition_that_does_not_hold_refuses_all(
    cluster: SmallCluster, present: str | None, expected: str | None, message: str
) -> None:
    alter(cluster, ("topic:t", KEY, present))
    before = cluster.image
    with pytest.raises(ApiError) as refused:
        alter(cluster, ("cluster", KEY, "1"), conditions=(("cluster", KEY, None), ("topic:t", KEY, expected)))
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_UPDATE_VERSION, message)
    assert refused.value.details == {"resource": "topic:t", "key": KEY, "expected": expected, "present": present}
    assert cluster.image is before


# --- bounds --------------------------------------------------------------------------------------------


def test_resource_has_so_many_labels_and_no_more(cluster: SmallCluster) -> None:
    alter(cluster, *(("topic:t", f"acme/{number}", "1") for number in range(LABELS_PER_RESOURCE_MAX)))
    with pytest.raises(LimitExceeded, match="topic:t would have 129 labels; 128 is the most"):
        alter(cluster, ("topic:t", "acme/one-more", "1"))
    alter(cluster, ("topic:t", "acme/one-more", "1"), ("topic:t", "acme/0", None), ("topic:t", "acme/1", "2"))
    assert cluster.image.labels.count == LABELS_PER_RESOURCE_MAX


def test_cluster_has_so_many_labels_and_no_more(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LABELS_MAX == 100_000
    monkeypatch.setattr(label_decisions, "LABELS_MAX", 3)
    alter(cluster, ("cluster", "a/1", "1"), ("topic:t", "a/2", "1"), ("broker:1", "a/3", "1"))
    with pytest.raises(LimitExceeded, match="The cluster would have 4 labels; 3 is the most"):
        alter(cluster, ("record:x", "a/4", "1"))
    alter(cluster, ("record:x", "a/4", "1"), ("cluster", "a/1", None))
    alter(cluster, ("record:x", "a/4", "2"))


# --- their end -----------------------------------------------------------------------------------------


def test_labels_go_with_their_topic(cluster: SmallCluster) -> None:
    """Of topic t; the partition t-1 of topic t and the topic t-1 have nearly the same names."""
    own = (
        ("topic:t", KEY, "1"),
        ("partition:t-0", KEY, "1"),
        ("partition:t-1", KEY, "1"),
        ("partition:t-1", "a/b", "1"),
    )
    others = [("partition:t-1-0", KEY, "1"), ("record:t", KEY, "1"), ("topic:t-1", KEY, "1")]
    alter(cluster, *own, *others)
    topic = cluster.image.topics.by_name["t"]
    decision = decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=[topic.id]))
    assert decision.is_atomic
    records = cluster.commit(decision)
    assert records[-1] == RemoveTopicRecord(topic.id)
    assert {(record.name, record.value) for record in records[:-1] if isinstance(record, ConfigRecord)} == {
        (config_of(Label(resource, key))[2], None) for resource, key, _ in own
    }
    assert listed(cluster) == others


def test_labels_of_a_topic_with_more_partitions_than_there_are_labels_go_too(cluster: SmallCluster) -> None:
    cluster.create("wide", *([0, 1, 2] for _ in range(20)))
    cluster.create("wide-1", [0, 1, 2])
    others = [("partition:t-0", KEY, "1"), ("partition:wide-1-0", KEY, "1"), ("record:wide-1", KEY, "1")]
    alter(cluster, ("partition:wide-17", KEY, "1"), *others)
    topic = cluster.image.topics.by_name["wide"]
    cluster.commit(decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=[topic.id])))
    assert listed(cluster) == others


def test_topic_without_labels_is_deleted_by_one_record(cluster: SmallCluster) -> None:
    alter(cluster, ("record:x", KEY, "1"))
    topic = cluster.image.topics.by_name["t"]
    decision = decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=[topic.id]))
    assert cluster.commit(decision) == [RemoveTopicRecord(topic.id)]
    assert not decision.is_internal


async def test_topic_with_more_labels_than_one_operation_may_write_is_deleted_with_all_of_them() -> None:
    """In one transaction: nobody sees it without some of its labels."""
    stage, topic_id, partitions = AccessStage(), uuid(3, 9), 90
    count = partitions * LABELS_PER_RESOURCE_MAX
    assert count > RECORDS_PER_OPERATION_MAX
    made: list[Record] = [
        TopicRecord("t", topic_id),
        *(PartitionRecord(n, topic_id, (1,), (1,), leader=1) for n in range(partitions)),
    ]
    await stage.write(lambda _: Decision([VersionedRecord(record, 0) for record in made], None))
    for first in (0, LABELS_PER_RESOURCE_MAX // 2):
        keys = [f"a/{number}" for number in range(first, first + LABELS_PER_RESOURCE_MAX // 2)]
        places = [Label(f"partition:t-{number}", key) for number in range(partitions) for key in keys]
        records = [VersionedRecord(ConfigRecord(*config_of(place), "1"), 0) for place in places]
        await stage.write(partial(lambda _, some: Decision(some, None), some=records))
    assert stage.image.labels.count == count

    _, written = await stage.write(lambda image: decide_delete_topics(image, DeleteTopicsRequest(topic_ids=[topic_id])))
    assert [type(record) for record in written[:1] + written[-2:]] == [
        BeginTransactionRecord,
        RemoveTopicRecord,
        EndTransactionRecord,
    ]
    assert len(written) == count + 3
    assert stage.image.labels.count == len(stage.image.topics) == 0
    stage.check_checkpoint()


def test_labels_go_with_their_broker(cluster: SmallCluster) -> None:
    alter(cluster, ("broker:1", KEY, "1"), ("broker:1", "a/b", "1"), ("broker:2", KEY, "1"))
    decision = decide_unregister_broker(cluster.image, cluster.config, UnregisterBrokerRequest(broker_id=1))
    cluster.commit(decision)
    assert listed(cluster) == [("broker:2", KEY, "1")]


def test_label_of_what_is_gone_can_be_removed(cluster: SmallCluster) -> None:
    """A Kafka controller that deletes a topic leaves its labels where they are."""
    cluster.write(ConfigRecord(*config_of(Label("topic:none", KEY)), "1"))
    alter(cluster, ("topic:none", KEY, None))
    assert listed(cluster) == []


# --- description ---------------------------------------------------------------------------------------


def test_description_has_what_meets_all_that_is_asked(cluster: SmallCluster) -> None:
    all_of_them: list[Entry] = [
        ("broker:1", "a/x", "1"),
        ("partition:t-1", "a/x", "2"),
        ("partition:t-1", "b/x", "3"),
        ("partition:t-1-0", "a/x", "4"),
        ("topic:t", "a/x", "5"),
        ("topic:t-1", "b.c/x", "6"),
    ]
    alter(cluster, *all_of_them)
    assert listed(cluster, page=1) == listed(cluster, page=2) == listed(cluster) == all_of_them
    assert listed(cluster, LabelFilter(resource="partition:t-1")) == all_of_them[1:3]
    assert listed(cluster, LabelFilter(resource="partition:t-1", kind="topic")) == []
    assert listed(cluster, LabelFilter(kind="topic")) == all_of_them[4:]
    assert listed(cluster, LabelFilter(topic="t")) == [*all_of_them[1:3], all_of_them[4]]
    assert listed(cluster, LabelFilter(topic="t-1"), page=1) == [all_of_them[3], all_of_them[5]]
    assert listed(cluster, LabelFilter(namespace="b")) == [all_of_them[2]]
    assert describe_labels(cluster.image, LabelFilter(), "partition:t-1/b", 1_000).labels[0].key == "b/x"


# --- against a dictionary ------------------------------------------------------------------------------

_RESOURCES = (
    "cluster",
    "topic:t",
    "topic:u",
    "partition:t-0",
    "partition:t-1",
    "partition:u-0",
    "broker:0",
    "record:x",
)


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32 - 1))
def test_labels_are_what_a_dictionary_would_be(seed: int) -> None:
    drawn = Random(seed)
    cluster = SmallCluster(brokers=1)
    cluster.create("t", [0], [0])
    cluster.create("u", [0])
    model: dict[tuple[str, str], str] = {}

    def entries(count: int) -> tuple[Entry, ...]:
        places = drawn.sample([(one, f"n/{key}") for one in _RESOURCES for key in "ab"], count)
        return tuple((*place, drawn.choice([None, "1", "2"])) for place in places)

    for _ in range(30):
        if drawn.random() < 0.05 and "t" in cluster.image.topics.by_name:
            topic = cluster.image.topics.by_name["t"]
            cluster.commit(decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=[topic.id])))
            model = {place: value for place, value in model.items() if not place[0].endswith((":t", ":t-0", ":t-1"))}
        changes, conditions = entries(drawn.randrange(4)), entries(drawn.randrange(3))
        holds = all(model.get((resource, key)) == value for resource, key, value in conditions)
        is_there = "t" in cluster.image.topics.by_name
        exist = all(
            is_there or value is None or not resource.endswith((":t", ":t-0", ":t-1")) for resource, _, value in changes
        )
        if holds and exist:
            alter(cluster, *changes, conditions=conditions)
            model |= {(resource, key): value for resource, key, value in changes if value is not None}
            for resource, key, value in changes:
                if value is None:
                    model.pop((resource, key), None)
        else:
            with pytest.raises(ApiError, match="does not exist" if holds else "for this change"):
                alter(cluster, *changes, conditions=conditions)
        assert {(resource, key): value for resource, key, value in listed(cluster)} == model
        assert cluster.image.labels.count == len(model)
