"""The way back from what was decided: applied, it leads to the state before; and what it cannot, it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from quorate.controller.configs.alter_configs import decide_incremental_alter_configs
from quorate.controller.configs.labels import decide_alter_labels
from quorate.controller.plans.way_back import WayBack, plan_back, way_back
from quorate.controller.plans.way_back_parts import RequestStates
from quorate.controller.plans.written_requests import written_requests
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.controller.protocol.configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorate.controller.protocol.labels import AlterLabelsRequest, LabelEntry
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from quorate.controller.topics.topics import decide_create_partitions, decide_delete_topics
from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.batches.builder import BatchBuilder
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    Record,
    UnregisterBrokerRecord,
)
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.difference.history import Audit
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from tests.unit.controller.small_cluster import SmallCluster


@pytest.fixture
def cluster() -> SmallCluster:
    made = SmallCluster(4)
    made.create("orders", [0, 1], [1, 2], configs={"retention.ms": "5"})
    label = LabelEntry(resource="partition:orders-1", key="acme/owner", value="me")
    made.commit(decide_alter_labels(made.image, AlterLabelsRequest(changes=[label])))
    return made


def delete(cluster: SmallCluster) -> None:
    request = DeleteTopicsRequest(topic_ids=[cluster.topic_id("orders")])
    cluster.commit(decide_delete_topics(cluster.image, request))


def move(cluster: SmallCluster, replicas: list[int]) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[partition])])
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, request))


def back_from(cluster: SmallCluster, change: Callable[[], None], since: Callable[[], None] = lambda: None) -> WayBack:
    before = cluster.image
    change()
    after = cluster.image
    since()
    return way_back([RequestStates(before, after, cluster.image)])


def test_deleted_topic_comes_back_empty_on_its_brokers_with_configs_and_labels(cluster: SmallCluster) -> None:
    back = back_from(cluster, lambda: delete(cluster))
    creation, labels = back.changes
    assert creation.create_topics is not None
    assert labels.alter_labels is not None
    (topic,) = creation.create_topics.topics
    assert [one.broker_ids for one in topic.assignments] == [[0, 1], [1, 2]]
    assert [(one.name, one.value) for one in topic.configs] == [("retention.ms", "5")]
    assert [(one.resource, one.value) for one in labels.alter_labels.changes] == [("partition:orders-1", "me")]
    assert back.lost == ["the data of topic orders: it comes back empty, and under another id"]


def test_topic_that_somebody_has_changed_since_it_was_made_is_not_deleted(cluster: SmallCluster) -> None:
    def create() -> None:
        cluster.create("new", [0, 1], configs={"retention.ms": "5"})

    def configure() -> None:
        cluster.write(ConfigRecord(2, "new", "retention.ms", "7"))

    def label() -> None:
        entry = LabelEntry(resource="partition:new-0", key="acme/owner", value="me")
        cluster.commit(decide_alter_labels(cluster.image, AlterLabelsRequest(changes=[entry])))

    def delete_again() -> None:
        cluster.commit(decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=[cluster.topic_id("new")])))

    for since, said in ((configure, "has other configs"), (label, "has other labels")):
        back = back_from(cluster, create, since)
        assert (back.changes, back.since) == ([], [f"topic new {said}"])
        delete_again()
    assert back_from(cluster, create).changes[0].delete_topics is not None
    delete_again()
    before = cluster.image
    create()
    after = cluster.image
    label()
    steps = [RequestStates(before, after, cluster.image), RequestStates(after, cluster.image, cluster.image)]
    assert way_back(steps).since == [], "the second step of the plan did it"


def test_deleted_topic_of_a_broker_that_has_gone_is_placed_anew_and_that_is_said(cluster: SmallCluster) -> None:
    def unregister() -> None:
        cluster.write(UnregisterBrokerRecord(2, cluster.epoch(2)))

    back = back_from(cluster, lambda: delete(cluster), unregister)
    assert back.changes[0].create_topics is not None
    (topic,) = back.changes[0].create_topics.topics
    assert (topic.assignments, topic.num_partitions, topic.replication_factor) == ([], 2, 2)
    assert "the places of topic orders's replicas: broker 2 is not registered" in back.lost


def test_deleted_topics_come_back_in_requests_that_are_not_too_large(cluster: SmallCluster) -> None:
    """The first two fit together, with nothing to spare; grown is more than a request makes at once."""
    cluster.create("a", *[[0]] * (RECORDS_PER_OPERATION_MAX - 4), configs={"retention.ms": "5"})
    for name in ("b", "c"):
        cluster.create(name, [0])
    cluster.create("grown", *[[0]] * (RECORDS_PER_OPERATION_MAX - 1))
    growth = CreatePartitionsTopic(name="grown", count=RECORDS_PER_OPERATION_MAX)
    request = CreatePartitionsRequest(topics=[growth])
    cluster.commit(decide_create_partitions(cluster.image, cluster.config, request, JavaRandom(1)))

    def delete_all() -> None:
        ids = [cluster.topic_id(name) for name in ("a", "b", "c", "grown")]
        cluster.commit(decide_delete_topics(cluster.image, DeleteTopicsRequest(topic_ids=ids)))

    back = back_from(cluster, delete_all)
    groups = []
    for change in back.changes:
        assert change.create_topics is not None
        groups.append([one.name for one in change.create_topics.topics])
        assert all(one.error_code == 0 for one in cluster.create_topics(change.create_topics).topics)
    assert groups == [["a", "b"], ["c"]]
    assert [one for one in back.lost if "grown" in one] == [
        "topic grown: to create it takes 10001 records, and one operation may write 10000"
    ]


@pytest.mark.parametrize("replicas", [[2, 3], [1, 0], [0]], ids=str)
def test_moves_go_back_to_the_order_of_before(cluster: SmallCluster, replicas: list[int]) -> None:
    back = back_from(cluster, lambda: move(cluster, replicas))
    request = back.changes[0].alter_partition_reassignments
    assert request is not None
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, request))
    found = cluster.partition("orders")
    assert found.assignment.target_replicas == (0, 1)


def test_move_that_others_have_sent_elsewhere_is_left_alone(cluster: SmallCluster) -> None:
    back = back_from(cluster, lambda: move(cluster, [2, 3]), lambda: move(cluster, [3, 1]))
    assert (back.changes, back.since) == ([], ["partition orders-0 goes to 3,1, not to 2,3"])


def test_created_topic_that_has_grown_or_gone_since_is_left_alone(cluster: SmallCluster) -> None:
    def create() -> None:
        cluster.create("new", [0])

    def delete_it() -> None:
        request = DeleteTopicsRequest(topic_ids=[cluster.topic_id("new")])
        cluster.commit(decide_delete_topics(cluster.image, request))

    back = back_from(cluster, create, delete_it)
    assert (back.changes, back.since) == ([], ["topic new is gone"])
    again = back_from(cluster, create)
    assert again.lost == ["what was written to topic new goes with it"]
    assert again.changes[0].delete_topics is not None


def test_plan_of_a_way_back_goes_by_the_newest_state(cluster: SmallCluster) -> None:
    back = back_from(cluster, lambda: move(cluster, [2, 3]))
    plan = plan_back(back, cluster.image, "a-cluster", "a1", 7)
    assert (plan.undoes, plan.state_offset) == ("a1", cluster.image.provenance.end_offset)
    assert plan.steps[0].facts[1].values["adding"] == [2, 3]


def test_settings_that_are_as_they_were_need_nothing(cluster: SmallCluster) -> None:
    def set_to(text: str) -> None:
        configs = [AlterableConfig(name="retention.ms", value=text)]
        resource = AlterConfigsResource(resource_type="TOPIC", resource_name="orders", configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        cluster.commit(decide_incremental_alter_configs(cluster.image, cluster.config, request))

    back = back_from(cluster, lambda: set_to("6"))
    assert back.changes[0].incremental_alter_configs is not None
    same = back_from(cluster, lambda: set_to("7"), lambda: set_to("6"))
    assert (same.changes, same.since) == ([], [])


# --- requests in the log -----------------------------------------------------------------------------


def batches(*values: str) -> Iterator[bytes]:
    """All in one batch, a record for each."""
    builder = BatchBuilder()
    for text in values:
        builder.add(ConfigRecord(2, "t", "retention.ms", text), 0)
    yield b"".join(map(bytes, builder.placed_pieces(7, 0, 1)))


def line(number: int, request_id: str | None = None) -> AuditLine:
    who = (None, None, None) if request_id is None else ("User:ana", "::1", request_id)
    return AuditLine(1, number, number + 1, "alter_configs", *who)


def value(image: MetadataImage) -> str | None:
    return image.configs.of(2, "t").get("retention.ms")


def test_request_inside_of_a_batch_has_the_states_around_its_own_records() -> None:
    audit = Audit([line(0), line(1, "a1"), line(2, "b2")])
    found, now, _ = written_requests(
        ReplayState(), batches("1", "2", "3"), audit, lambda one: one.request_id is not None
    )
    told = [(one.line.request_id, value(one.before), value(one.after)) for one in found]
    assert (told, value(now)) == ([("a1", "1", "2"), ("b2", "2", "3")], "3")


def test_changes_of_which_nobody_says_who_asked_are_told_by_their_offsets() -> None:
    known = Audit([line(0), line(1, "a1")])
    written = written_requests(
        ReplayState(), batches("1", "2", "2", "3"), known, lambda one: one.request_id is not None
    )
    assert ([one.line.request_id for one in written.requests], written.unknown) == (["a1"], [2])
    nobody = written_requests(ReplayState(), stretch(["1"], ["begin", "2"], ["end"]), Audit([line(0)]), bool)
    assert nobody.unknown == [1]


def stretch(*contents: list[str]) -> Iterator[bytes]:
    """A batch for each list: values, or the begin and the end of a transaction."""
    markers: dict[str, Record] = {"begin": BeginTransactionRecord(), "end": EndTransactionRecord()}
    offset = 0
    for content in contents:
        builder = BatchBuilder()
        for text in content:
            builder.add(markers.get(text) or ConfigRecord(2, "t", "retention.ms", text), 0)
        yield b"".join(map(bytes, builder.placed_pieces(7, offset, 1)))
        offset += len(content)


#: Batches, the offsets at which somebody's requests stand, and the values before and after each of these.
TRANSACTIONS = {
    "another's behind it": ([["1"], ["begin", "2"], ["end"]], {0: "a"}, [("a", None, "1")]),
    "its own": ([["1"], ["begin", "2"], ["3"], ["end"]], {1: "a"}, [("a", "1", "3")]),
    "its own, and another one in it": (
        [["begin"], ["1", "2"], ["end"]],
        {0: "a", 2: "b"},
        [("a", None, "2"), ("b", None, None)],
    ),
    "another request behind its end": (
        [["begin", "1"], ["end", "2"]],
        {0: "a", 3: "b"},
        [("a", None, "1"), ("b", "1", "2")],
    ),
    "one ends, another begins": (
        [["begin", "1"], ["end", "begin", "2"], ["end"]],
        {0: "a"},
        [("a", None, "1")],
    ),
}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_transaction_is_of_the_request_that_began_it(name: str) -> None:
    contents, asked, expected = TRANSACTIONS[name]
    lines = [line(offset, asked.get(offset)) for offset in range(sum(map(len, contents)))]
    audit = Audit(lines)
    found, _, _ = written_requests(ReplayState(), stretch(*contents), audit, lambda one: one.request_id is not None)
    assert [(one.line.request_id, value(one.before), value(one.after)) for one in found] == expected
