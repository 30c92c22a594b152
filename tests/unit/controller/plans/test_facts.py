"""Facts: what changes of them names itself, what is not about the change leaves them alone, and secrets stay out."""

from __future__ import annotations

import pytest

from quorate.controller.api.answers.plan_models import FACTS_MAX, Fact, PlannedChange, digest_of_facts
from quorate.controller.configs.alter_configs import decide_incremental_alter_configs
from quorate.controller.plans.differences import differences
from quorate.controller.plans.expectation import expecting
from quorate.controller.plans.facts import change_of, facts_of
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    BrokerHeartbeatRequest,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.controller.protocol.acls import AclCreation, AclFilter, CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    ResourceTypeName,
)
from quorate.controller.protocol.quotas import AlterClientQuotasRequest
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from quorate.controller.topics.topics import decide_delete_topics
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    EntityData,
    FenceBrokerRecord,
)
from tests.unit.controller.small_cluster import SmallCluster, uuid


@pytest.fixture
def cluster() -> SmallCluster:
    made = SmallCluster(4)
    made.create("orders", [0, 1], [1, 2])
    return made


def moving(replicas: list[int] | None, number: int = 0) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=number, replicas=replicas)
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[partition])])


def configured(
    name: str, value: str, kind: ResourceTypeName = "TOPIC", of: str = "orders"
) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=name, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=of, configs=[change])]
    )


def delete(cluster: SmallCluster) -> None:
    request = DeleteTopicsRequest(topic_ids=[cluster.topic_id("orders")])
    cluster.commit(decide_delete_topics(cluster.image, request))


def change(request: object) -> PlannedChange:
    found = change_of(request)
    assert found is not None
    return found


def test_topic_that_was_made_anew_under_its_name_is_another_one(cluster: SmallCluster) -> None:
    growth = change(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=5)]))
    deletion = change(DeleteTopicsRequest(topic_ids=[cluster.topic_id("orders")]))
    then = facts_of(cluster.image, growth), facts_of(cluster.image, deletion)
    assert then[0] == [Fact(about="topic orders", values={"id": "AwAAAAAAAAAAAAAAAAAAAA", "partitions": 2})]
    delete(cluster)
    cluster.create("orders", [0, 1], [1, 2])
    (another,) = differences(then[0], facts_of(cluster.image, growth))
    assert another.startswith("topic orders is another one of that name: its id is AwAAAAAAAAABAAAAAAAAAA, not")
    assert differences(then[1], facts_of(cluster.image, deletion)) == ["topic orders is gone"]


def test_moves_go_by_who_gets_replicas_and_not_by_who_leads(cluster: SmallCluster) -> None:
    wanted = change(moving([2, 3]))
    then = facts_of(cluster.image, wanted)
    cluster.write(FenceBrokerRecord(0, cluster.epoch(0)))
    assert facts_of(cluster.image, wanted) == then
    cluster.write(FenceBrokerRecord(3, cluster.epoch(3)))
    assert differences(then, facts_of(cluster.image, wanted)) == ["broker 3: state is fenced, not active"]
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, moving([0, 2])))
    assert differences(then, facts_of(cluster.image, wanted)) == [
        "partition orders-0: replicas is 0,2,1, not 0,1",
        "partition orders-0: adding is 2, not none",
        "partition orders-0: removing is 1, not none",
        "broker 3: state is fenced, not active",
    ]
    assert facts_of(cluster.image, change(moving([1], 7)))[1].values == {"replicas": None}


def test_thing_that_a_change_goes_by_and_the_plan_does_not_know_is_named(cluster: SmallCluster) -> None:
    """Not as something that is new: it may have been there all the while."""
    now = facts_of(cluster.image, change(moving([2, 3])))
    assert differences([], now) == [
        f"the plan has no fact about {about}, which its change goes by"
        for about in ("topic orders", "partition orders-0", "broker 2", "broker 3")
    ]
    assert differences(now[:-1], now) == ["the plan has no fact about broker 3, which its change goes by"]


def test_places_are_those_of_the_partitions_in_the_order_in_which_moves_name_them(cluster: SmallCluster) -> None:
    places = {0: [0, 1], 1: [3, 1], 2: [2, 0]}
    cluster.create("wide", *places.values())
    move = ReassignablePartition(partition_index=1, replicas=[0, 2])
    going = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="wide", partitions=[move])])
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, going))
    named = [ReassignablePartition(partition_index=number, replicas=[3]) for number in (2, 7, 1, 0)]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=named) for name in ("wide", "nowhere")]
    )
    found = {fact.about: fact.values for fact in facts_of(cluster.image, change(request))}
    assert [name for name in found if name.startswith("partition wide")] == [
        f"partition wide-{n}" for n in (2, 7, 1, 0)
    ]
    assert found["partition wide-1"] == {"replicas": [0, 2, 1, 3], "adding": [0, 2], "removing": [1, 3]}
    for number in (0, 2):
        assert found[f"partition wide-{number}"] == {"replicas": places[number], "adding": [], "removing": []}
    assert all(found[f"partition {name}"] == {"replicas": None} for name in ("wide-7", "nowhere-0", "nowhere-1"))


def test_values_that_may_be_secrets_are_told_apart_and_not_shown(cluster: SmallCluster) -> None:
    secret = configured("ssl.key.password", "hush", "BROKER", "1")
    told = []
    for value in ("hush", "more hush"):
        request = configured("ssl.key.password", value, "BROKER", "1")
        cluster.commit(decide_incremental_alter_configs(cluster.image, cluster.config, request))
        (fact,) = facts_of(cluster.image, change(secret))
        told.append(fact.values["ssl.key.password"])
    assert "hush" not in str(told)
    assert len(set(told)) == 2


def test_configs_go_by_those_that_are_named(cluster: SmallCluster) -> None:
    wanted = change(configured("retention.ms", "5"))
    then = facts_of(cluster.image, wanted)
    cluster.commit(decide_incremental_alter_configs(cluster.image, cluster.config, configured("segment.ms", "9")))
    assert facts_of(cluster.image, wanted) == then
    cluster.commit(decide_incremental_alter_configs(cluster.image, cluster.config, configured("retention.ms", "7")))
    assert differences(then, facts_of(cluster.image, wanted)) == [
        "configs of topic/orders: retention.ms is 7, and was not set"
    ]


def test_things_that_are_called_alike_are_told_apart(cluster: SmallCluster) -> None:
    both = {"client-id": "app", "user": "ana"}, {"user": "ana client-id/app"}
    entries = [
        {
            "entity": [
                {"entity_type": kind, "entity_name": name} for kind, name in sorted(entity.items(), reverse=True)
            ],
            "ops": [{"key": "producer_byte_rate", "remove": True}],
        }
        for entity in both
    ]
    wanted = change(AlterClientQuotasRequest.model_validate({"entries": entries}))
    then = facts_of(cluster.image, wanted)
    cluster.write(ClientQuotaRecord((EntityData("user", "ana client-id/app"),), "producer_byte_rate", 1.0, False))
    now = facts_of(cluster.image, wanted)
    assert digest_of_facts(now) != digest_of_facts(then)
    assert differences(then, now) == ["quotas of user/ana client-id/app: producer_byte_rate is 1.0, and was not set"]


def test_removal_of_acls_goes_by_those_that_it_means(cluster: SmallCluster) -> None:
    wanted = change(DeleteAclsRequest(filters=[AclFilter(principal_filter="User:ana")]))
    then = facts_of(cluster.image, wanted)
    for number, who in enumerate(("User:bo", "User:ana")):
        cluster.write(AccessControlEntryRecord(uuid(9, number), 2, "orders", 3, who, "*", 3, 3))
    assert differences(then, facts_of(cluster.image, wanted)) == [
        "ACL ALLOW User:ana from * to READ TOPIC LITERAL orders is new"
    ]


def test_new_acl_is_there_where_one_says_all_that_it_says(cluster: SmallCluster) -> None:
    def asked(who: str, host: str) -> AclCreation:
        names = {"resource_type": "TOPIC", "resource_name": "orders", "operation": "READ", "permission_type": "ALLOW"}
        return AclCreation.model_validate({**names, "principal": who, "host": host})

    cluster.write(AccessControlEntryRecord(uuid(9, 1), 2, "orders", 3, "User:ana", "h", 3, 3))
    # In a line, the last one reads as the ACL of a principal with a space in its name would.
    cluster.write(AccessControlEntryRecord(uuid(9, 2), 2, "orders", 3, "User:bo from a", "b", 3, 3))
    wanted = [asked("User:ana", "h"), asked("User:ana", "*"), asked("User:bo", "a from b")]
    found = facts_of(cluster.image, change(CreateAclsRequest(creations=wanted)))
    assert [fact.values["is there"] for fact in found] == ["yes", "no", "no"]
    assert found[0].about == "ACL ALLOW User:ana from h to READ TOPIC LITERAL orders"


def test_removal_of_acls_that_is_too_much_to_look_at_is_too_much_to_go_by(cluster: SmallCluster) -> None:
    """A condition is looked at in the turn of its change, before the change could be refused."""
    cluster.write(*(AccessControlEntryRecord(uuid(9, n), 2, f"t{n}", 3, "User:bo", "*", 3, 3) for n in range(10_000)))
    nobody = [AclFilter(host_filter=f"h{number}") for number in range(101)]
    assert len(facts_of(cluster.image, change(DeleteAclsRequest(filters=nobody[:2])))) == 2
    with pytest.raises(LimitExceeded, match="look at more than 1000000 ACLs"):
        facts_of(cluster.image, change(DeleteAclsRequest(filters=nobody)))
    everybody = [AclFilter(host_filter="*")] * 11
    with pytest.raises(LimitExceeded, match="match more than 100000 ACLs"):
        facts_of(cluster.image, change(DeleteAclsRequest(filters=everybody)))


def test_too_many_facts_are_refused_before_they_are_gathered(cluster: SmallCluster) -> None:
    topics = [CreatePartitionsTopic(name=f"t{number}", count=5, assignments=None) for number in range(10_000)]
    assert len(facts_of(cluster.image, change(CreatePartitionsRequest(topics=topics)))) == 10_000
    lists = [list(range(first, first + 64)) for first in range(0, FACTS_MAX + 64, 64)]
    one = CreatePartitionsTopic(name="orders", count=5, assignments=lists[:10_000])
    with pytest.raises(LimitExceeded, match="more than 100000 facts"):
        facts_of(cluster.image, change(CreatePartitionsRequest(topics=[one])))


def test_facts_that_are_too_many_are_not_cut_where_one_is_named_twice(
    cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.plans.facts.FACTS_MAX", 3)

    def growth(*names: str) -> PlannedChange:
        return change(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=5) for name in names]))

    assert [fact.about for fact in facts_of(cluster.image, growth("a", "a", "b"))] == ["topic a", "topic b"]
    with pytest.raises(LimitExceeded, match="more than 3 facts"):
        facts_of(cluster.image, growth("a", "a", "b", "c", "d"))


def test_election_of_all_goes_by_nothing_and_other_requests_are_no_changes(cluster: SmallCluster) -> None:
    with pytest.raises(ApiError, match="name the partitions"):
        facts_of(cluster.image, change(ElectLeadersRequest(election_type="PREFERRED")))
    assert change_of(BrokerHeartbeatRequest(broker_id=1, broker_epoch=1, current_metadata_offset=1)) is None
    assert change_of(None) is None


def test_expectation_holds_until_a_fact_is_another(cluster: SmallCluster) -> None:
    wanted = change(moving([2, 3]))
    check = expecting(wanted, digest_of_facts(facts_of(cluster.image, wanted)))
    check(cluster.image)
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, moving([0, 2])))
    with pytest.raises(ApiError, match="no longer so") as refused:
        check(cluster.image)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    for wrong in ("", "A" * 64, "0" * 63, "0" * 65):
        with pytest.raises(ApiError, match="64 hexadecimal digits"):
            expecting(wanted, wrong)


def test_digest_is_of_what_is_said_and_of_its_order() -> None:
    """Other programs make it by docs/plans.md: it must not change."""
    facts = [Fact(about="ä", values={"b": [1, 2], "a": None}), Fact(about="x", values={})]
    assert digest_of_facts(facts) == "5997abca669ddccfe5fed7d3abbc20781ff2ff4ba14be0bd5acd4d243133b0de"
    assert digest_of_facts(facts[::-1]) != digest_of_facts(facts)


def test_reading_ends_behind_the_filter_where_it_is_given_up(cluster: SmallCluster) -> None:
    anything = AclFilter(resource_type_filter="ANY", pattern_type_filter="ANY", operation="ANY", permission_type="ANY")
    wanted, calls = change(DeleteAclsRequest(filters=[anything] * 50)), 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "nobody waits any more")

    with pytest.raises(ApiError, match="nobody waits"):
        facts_of(cluster.image, wanted, check)
    assert calls == 4
