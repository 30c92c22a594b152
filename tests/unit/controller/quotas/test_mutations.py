"""The quota of mutations by a clock that only the test moves: Kafka's numbers, and requests of many items."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.origin import Origin
from quorate.controller.protocol import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
)
from quorate.controller.quotas import mutations
from quorate.controller.quotas.mutations import MutationQuota, MutationQuotas
from quorate.controller.topics.topics import decide_create_partitions, decide_create_topics, decide_delete_topics
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.metadata_log.records.records import ClientQuotaRecord, EntityData
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image_parts import ClientQuotasImage
from tests.unit.controller.small_cluster import SmallCluster

NONE, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
ANA = Origin("User:ana", "10.0.0.1", "a1", "loader")


def limited(rate: float, user: str | None = "ana") -> SmallCluster:
    """A cluster in which this user may make so many mutations a second; None: every user for himself."""
    cluster = SmallCluster()
    cluster.write(ClientQuotaRecord((EntityData("user", user),), "controller_mutation_rate", rate))
    return cluster


class Clients:
    """The quotas of a cluster, and the time."""

    def __init__(self, rate: float, burst_seconds: float = 10, user: str | None = "ana") -> None:
        self.image = limited(rate, user).image.client_quotas
        self.quotas = MutationQuotas(burst_seconds)
        self.now_ms = 0.0

    def quota(self, name: str = "ana", client_id: str = "") -> MutationQuota:
        found = self.quotas.of(self.image, Origin(f"User:{name}", "10.0.0.1", "a1", client_id), self.now_ms)
        assert found is not None
        return found

    def record(self, partitions: int, name: str = "ana") -> int:
        """For how long the client has to wait, in ms; 0: it was counted."""
        quota = self.quota(name)
        with suppress(ApiError):
            quota.take(partitions)
        self.quotas.charge()
        return quota.throttle_time_ms


def test_spike_is_taken_and_its_debt_refuses_the_next_one() -> None:
    """Kafka's ``StrictControllerMutationQuotaTest``: 10 a second, 10 windows."""
    clients = Clients(10)
    assert [clients.record(90), clients.record(90), clients.record(90)] == [0, 0, 8000]
    clients.now_ms += 5000
    assert clients.record(90) == 3000


def test_client_that_waited_for_as_long_as_it_was_told_is_taken() -> None:
    """Kafka's ``ControllerMutationQuotaManagerTest``: what is refused is not counted, and no token is lost."""
    clients = Clients(10)
    for _ in range(10):
        assert clients.record(10) == 0
        clients.now_ms += 1000
    assert [clients.record(110), clients.record(110)] == [0, 1000]
    clients.now_ms += 999
    assert clients.record(110) == 1
    clients.now_ms += 1
    assert clients.record(110) == 0


def test_idle_client_saves_up_a_burst_and_no_more() -> None:
    clients = Clients(10)
    clients.record(0)
    clients.now_ms += 3_600_000
    assert [clients.record(100), clients.record(1), clients.record(1)] == [0, 0, 100]


def test_other_users_have_buckets_of_their_own_and_the_controller_none() -> None:
    clients = Clients(1, user=None)
    assert [clients.record(100), clients.record(1), clients.record(1, "bo")] == [0, 90_000, 0]
    assert clients.quotas.of(clients.image, None, 0.0) is None
    assert clients.quotas.of(ClientQuotasImage(), ANA, 0.0) is None
    assert len(clients.quotas) == 2


def test_lowered_quota_takes_away_what_was_saved_up() -> None:
    clients = Clients(100)
    assert clients.record(0) == 0
    clients.image = limited(1).image.client_quotas
    assert [clients.record(10), clients.record(1), clients.record(1)] == [0, 0, 1000]


def test_client_that_asked_least_recently_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "BUCKETS_MAX", 2)
    clients = Clients(1, user=None)
    for name in ("ana", "bo", "ana", "carl"):
        clients.record(20, name)
    assert len(clients.quotas) == 2
    assert [clients.record(1, "ana"), clients.record(1, "bo")] == [10_000, 0]


def test_each_topic_is_refused_for_itself_and_only_what_was_done_is_counted() -> None:
    cluster = limited(1)
    quotas = MutationQuotas(2)
    topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in ("a", "b", "a!", "c")]
    quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
    decision = decide_create_topics(
        cluster.image, cluster.config, CreateTopicsRequest(topics=topics), JavaRandom(1), cluster.new_topic_id, quota
    )
    cluster.commit(decision)
    codes = [topic.error_code for topic in decision.reply.topics]
    assert codes == [NONE, THROTTLED, ErrorCode.INVALID_TOPIC_EXCEPTION, THROTTLED]
    assert "controller_mutation_rate is 1" in (decision.reply.topics[1].error_message or "")
    assert (decision.reply.throttle_time_ms, quotas.throttled) == (1000, 2)
    assert list(cluster.image.topics.by_name) == ["a"]


def test_topic_that_there_is_no_room_for_uses_no_quota() -> None:
    cluster = limited(1)
    quotas = MutationQuotas(2)
    topics = [CreatableTopic(name=name, num_partitions=n, replication_factor=1) for name, n in (("a", 9), ("b", 3))]
    quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
    config = replace(cluster.config, partitions_max=5)
    request = CreateTopicsRequest(topics=topics)
    decision = decide_create_topics(cluster.image, config, request, JavaRandom(1), cluster.new_topic_id, quota)
    assert [topic.error_code for topic in decision.reply.topics] == [ErrorCode.POLICY_VIOLATION, NONE]


def test_partitions_are_counted_when_they_are_added_and_deleted() -> None:
    cluster = limited(1)
    cluster.create("a", [0], [0])
    cluster.create("b", [0])
    quotas = MutationQuotas(2)
    grow = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=5)])
    quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
    cluster.commit(decide_create_partitions(cluster.image, cluster.config, grow, JavaRandom(1), quota))
    quotas.charge()
    assert len(cluster.image.partitions) == 6
    again = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="b", count=2)])
    quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
    grown = decide_create_partitions(cluster.image, cluster.config, again, JavaRandom(1), quota).reply
    assert (grown.results[0].error_code, grown.throttle_time_ms) == (THROTTLED, 1000)

    ids = DeleteTopicsRequest(topic_ids=[cluster.topic_id("a"), cluster.topic_id("b")])
    quota = quotas.of(cluster.image.client_quotas, ANA, 1000.0)
    deletion = decide_delete_topics(cluster.image, ids, quota)
    cluster.commit(deletion)
    assert [one.error_code for one in deletion.reply.responses] == [NONE, THROTTLED]
    assert (deletion.reply.responses[1].name, deletion.reply.throttle_time_ms) == ("b", 5000)
    assert list(cluster.image.topics.by_name) == ["b"]


def test_trial_is_counted_as_kafka_does() -> None:
    cluster = limited(1)
    quotas = MutationQuotas(2)
    topics = [CreatableTopic(name="a", num_partitions=3, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    for expected in (0, 1000):
        quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
        decision = decide_create_topics(
            cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id, quota
        )
        quotas.charge()
        assert decision.reply.throttle_time_ms == expected


def test_request_that_is_refused_as_a_whole_costs_nothing_and_counts_for_itself() -> None:
    """Its first topics would be created, and its last is more than one request may write."""
    cluster = limited(1)
    quotas = MutationQuotas(10)
    small = [CreatableTopic(name=name, num_partitions=9, replication_factor=1) for name in ("a", "b", "c")]
    large = CreatableTopic(name="large", num_partitions=RECORDS_PER_OPERATION_MAX, replication_factor=1)

    def create(*topics: CreatableTopic) -> Decision[CreateTopicsResponse]:
        quota = quotas.of(cluster.image.client_quotas, ANA, 0.0)
        request = CreateTopicsRequest(topics=list(topics))
        return decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id, quota)

    with pytest.raises(LimitExceeded):
        create(small[0], large)
    decision = create(*small)
    # 10 tokens: the second of 9 is still taken, and is 8 too many for the third.
    assert [topic.error_code for topic in decision.reply.topics] == [NONE, NONE, THROTTLED]
    assert decision.reply.throttle_time_ms == 8000
