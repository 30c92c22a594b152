"""Registration, heartbeats, fencing: one situation a test, outcomes as Kafka's."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.brokers.fencing import (
    apply_fencing,
    decide_broker_heartbeat,
    decide_fence_stale_broker,
)
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.brokers.registration import decide_unregister_broker
from quorate.controller.brokers.session_order import Session
from quorate.controller.brokers.steady_heartbeats import standing_or_none, steady_heartbeat
from quorate.controller.partitions.broker_epoch import check_broker_epoch
from quorate.controller.protocol import BrokerHeartbeatRequest, SupportedFeature, UnregisterBrokerRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.small_cluster import SmallCluster, registration, uuid


def test_register_new_broker_starts_fenced_at_the_next_offset() -> None:
    cluster = SmallCluster(brokers=0)
    offset = cluster.next_offset
    (record,) = cluster.register(registration(5))
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.log_dirs) == (offset, True, (uuid(2, 5),))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(2, 9), uuid(2, 9)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [uuid(2, 1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        (
            {
                "features": [
                    SupportedFeature(name="metadata.version", min_supported_version=1, max_supported_version=29)
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_register_invalid_request_is_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    cluster = SmallCluster()
    with pytest.raises(ApiError) as caught:
        cluster.register(registration(7, **changes))
    assert caught.value.code == code


def test_register_other_incarnation_waits_for_the_session_to_end() -> None:
    """Exactly the session timeout later the old incarnation still counts; being fenced does not help the new one."""
    cluster = SmallCluster()
    cluster.heartbeat(0, want_fence=True)
    cluster.now_ms = 9_000.0
    with pytest.raises(ApiError) as caught:
        cluster.register(registration(0, incarnation=1))
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms = 9_001.0
    cluster.register(registration(0, incarnation=1))
    assert cluster.image.cluster.brokers[0].incarnation_id == uuid(1, 0, 1)


def test_register_same_incarnation_keeps_epoch_and_flags() -> None:
    cluster = SmallCluster()
    epoch = cluster.epoch(0)
    (record,) = cluster.register(registration(0, rack="b"))
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.rack) == (epoch, False, "b")


@pytest.mark.parametrize(("is_clean", "elr"), [(True, (0,)), (False, ())])
def test_register_new_incarnation_leaves_isr_and_unless_clean_the_elr(is_clean: bool, elr: tuple[int, ...]) -> None:
    cluster = SmallCluster(elr=True)
    cluster.create("t", [0, 1], configs={"min.insync.replicas": "2"})
    cluster.now_ms = 10_000.0
    epoch = cluster.epoch(0)
    records = cluster.register(registration(0, incarnation=1, previous_broker_epoch=epoch if is_clean else -1))
    assert [type(record) for record in records] == [PartitionChangeRecord, RegisterBrokerRecord]
    partition = cluster.partition("t")
    assert (partition.isr, partition.leader, partition.elr) == ((1,), 1, elr)
    assert cluster.epoch(0) == cluster.next_offset - 2  # the operation began before the clean-up


def test_heartbeat_behind_its_registration_stays_fenced() -> None:
    cluster = SmallCluster(brokers=0)
    cluster.register(registration(0))
    reply, records = cluster.heartbeat(0, current_metadata_offset=cluster.next_offset - 2)
    assert (reply.is_caught_up, reply.is_fenced, records) == (False, True, [])
    reply, records = cluster.heartbeat(0)
    assert (reply.is_caught_up, reply.is_fenced) == (True, False)
    assert records == [BrokerRegistrationChangeRecord(0, cluster.epoch(0), fenced=-1)]


def test_heartbeat_stale_epoch_is_refused_but_noted() -> None:
    cluster = SmallCluster()
    for broker, epoch in ((0, 999), (77, 5)):
        with pytest.raises(ApiError) as caught:
            cluster.heartbeat(broker, broker_epoch=epoch)
        assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
        assert cluster.heartbeats.contact_ms(broker, epoch) == 0.0


def test_heartbeat_want_fence_changes_partitions_before_the_broker() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2])
    reply, records = cluster.heartbeat(0, want_fence=True)
    assert reply.is_fenced
    assert [type(record) for record in records] == [PartitionChangeRecord, BrokerRegistrationChangeRecord]
    assert cluster.partition("t").leader == 1


def test_heartbeat_unfencing_elects_where_nobody_leads_after_the_broker_changed() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0])
    cluster.heartbeat(0, want_fence=True)
    assert cluster.partition("t").leader == -1
    _, records = cluster.heartbeat(0)
    assert [type(record) for record in records] == [BrokerRegistrationChangeRecord, PartitionChangeRecord]
    assert cluster.partition("t").leader == 0


def test_heartbeat_controlled_shutdown_waits_until_the_others_know() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2])
    for broker in (1, 2):
        cluster.heartbeat(broker)
    reply, records = cluster.heartbeat(0, want_shut_down=True)
    assert (reply.in_controlled_shutdown, reply.should_shut_down, reply.is_fenced) == (True, False, False)
    assert [type(record) for record in records] == [BrokerRegistrationChangeRecord, PartitionChangeRecord]
    assert cluster.partition("t").leader == 1
    cluster.heartbeat(1)
    assert cluster.heartbeat(0, want_shut_down=True)[0].should_shut_down is False
    cluster.heartbeat(2)
    reply, _ = cluster.heartbeat(0, want_shut_down=True)
    assert (reply.should_shut_down, reply.is_fenced) == (True, True)


def test_heartbeat_offline_directory_takes_its_replicas_out_of_the_isr() -> None:
    cluster = SmallCluster(brokers=2)
    cluster.register(registration(2, log_dirs=[uuid(2, 2, 0), uuid(2, 2, 1)]))
    cluster.heartbeat(2)
    cluster.create("t", [0, 1])
    _, records = cluster.heartbeat(0, offline_log_dirs=[uuid(2, 0)])
    assert [type(record) for record in records] == [PartitionChangeRecord, BrokerRegistrationChangeRecord]
    assert cluster.partition("t").isr == (1,)
    _, records = cluster.heartbeat(2, offline_log_dirs=[uuid(2, 2, 1), uuid(2, 1)])
    assert records == [BrokerRegistrationChangeRecord(2, cluster.epoch(2), log_dirs=(uuid(2, 2, 0),))]


def test_fence_stale_broker_fences_one_at_a_time_when_its_session_is_over() -> None:
    cluster = SmallCluster()
    cluster.now_ms = 1_000.0
    cluster.heartbeat(2)

    def fence() -> Session | None:
        decision = decide_fence_stale_broker(cluster.image, cluster.config, cluster.heartbeats, cluster.now_ms)
        cluster.commit(decision)
        apply_fencing(cluster.heartbeats, decision)
        return decision.reply

    assert cluster.heartbeats.next_check_ms() == 9_000.0
    cluster.now_ms = 9_000.0
    assert fence() is None
    cluster.now_ms = 9_001.0
    assert [fence(), fence(), fence()] == [(0, cluster.epoch(0)), (1, cluster.epoch(1)), None]
    assert [cluster.image.cluster.brokers[broker].is_fenced for broker in range(3)] == [True, True, False]


def test_fence_stale_broker_drops_sessions_that_never_were() -> None:
    cluster = SmallCluster(brokers=0)
    cluster.heartbeats.note_contact(Session(5, 1), 0.0)
    decision = decide_fence_stale_broker(cluster.image, cluster.config, cluster.heartbeats, 10_000.0)
    assert (list(decision.records), decision.reply) == ([], (5, 1))
    apply_fencing(cluster.heartbeats, decision)
    assert cluster.heartbeats.next_check_ms() is None


def test_unregister_broker_leaves_its_isrs_first() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2])
    decision = decide_unregister_broker(cluster.image, cluster.config, UnregisterBrokerRequest(broker_id=0))
    records = cluster.commit(decision)
    assert [type(record) for record in records] == [PartitionChangeRecord, UnregisterBrokerRecord]
    assert (cluster.partition("t").isr, 0 in cluster.image.cluster.brokers) == ((1, 2), False)
    with pytest.raises(ApiError) as caught:
        decide_unregister_broker(cluster.image, cluster.config, UnregisterBrokerRequest(broker_id=0))
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_check_broker_epoch_other_epoch_is_stale() -> None:
    cluster = SmallCluster()
    assert check_broker_epoch(cluster.image, 0, cluster.epoch(0)).id == 0
    with pytest.raises(ApiError):
        check_broker_epoch(cluster.image, 0, cluster.epoch(0) + 1)


def test_heartbeats_of_image_give_every_unfenced_broker_a_full_session() -> None:
    cluster = SmallCluster()
    fresh = BrokerHeartbeats.of_image(cluster.image, 9_000, now_ms=50_000.0)
    assert fresh.next_check_ms() == 59_000.0
    silent = BrokerHeartbeats.of_image(cluster.image, 9_000, now_ms=50_000.0, starts_sessions=False)
    assert silent.next_check_ms() is None


def test_broker_that_leaves_does_not_wait_for_one_that_nobody_plays() -> None:
    """In a cluster made from another one's metadata brokers are alive that never speak."""
    cluster = SmallCluster()
    silent = BrokerHeartbeats.of_image(cluster.image, 9_000, now_ms=50_000.0, starts_sessions=False)
    silent.note_contact(Session(1, cluster.epoch(1)), 50_001.0)
    silent.touch(1, is_fenced=False, metadata_offset=900)
    silent.start_shutdown(1, 901)
    assert silent.may_shut_down(1)
    silent.note_contact(Session(2, cluster.epoch(2)), 50_002.0)
    assert not silent.may_shut_down(1), "it speaks, and has not said how far it is"
    silent.touch(2, is_fenced=False, metadata_offset=901)
    assert silent.may_shut_down(1)


@pytest.mark.parametrize(
    ("is_fenced", "want_fence", "is_steady"),
    [
        (False, False, True),
        (False, True, False),
        (True, True, True),
        (True, False, False),
    ],
)
@pytest.mark.parametrize("offset", [-1, 1_000])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"want_shut_down": True},
        {"offline_log_dirs": [uuid(2, 1)]},
        {"cordoned_log_dirs": []},
        {"broker_epoch": 99},
        {"broker_id": 7},
    ],
)
def test_steady_heartbeat_is_the_decision_where_there_is_one(
    is_fenced: bool, want_fence: bool, is_steady: bool, offset: int, change: dict[str, object]
) -> None:
    cluster = SmallCluster()
    if is_fenced:
        cluster.heartbeat(1, want_fence=True)
    values = {"broker_id": 1, "broker_epoch": cluster.epoch(1), "current_metadata_offset": offset}
    request = BrokerHeartbeatRequest.model_validate(values | {"want_fence": want_fence} | change)

    standing = standing_or_none(request)
    found = (
        None
        if standing is None
        else steady_heartbeat(cluster.image, cluster.heartbeats, standing, offset, cluster.now_ms)
    )

    assert (found is not None) == (is_steady and not change)
    if found is not None:
        expected = decide_broker_heartbeat(cluster.image, cluster.config, cluster.heartbeats, request, cluster.now_ms)
        assert (found, cluster.heartbeats.state(1)) == (expected.reply, expected.next_state)
        assert (list(expected.records), list(expected.slices), expected.changes_registration) == ([], [], False)
        assert not expected.is_finding, "the same, answered in the queue, waits for nobody either"


def test_broker_that_stays_what_it_is_has_its_session_renewed_and_its_offset_noted() -> None:
    cluster = SmallCluster()
    session = Session(1, cluster.epoch(1))

    cluster.heartbeats.stay(session, 500, 7_000.0)

    assert cluster.heartbeats.contact_ms(1, session.broker_epoch) == 7_000.0
    for broker in (0, 1, 2):
        cluster.heartbeat(broker, current_metadata_offset=500 if broker == 1 else 900)
    cluster.heartbeats.start_shutdown(2, 501)
    assert not cluster.heartbeats.may_shut_down(2)
    cluster.heartbeats.stay(session, 501, 7_001.0)
    assert cluster.heartbeats.may_shut_down(2)


def test_session_is_promised_for_what_is_left_since_leadership_was_confirmed() -> None:
    cluster = SmallCluster()
    timeout_ms = cluster.config.session_timeout_ms
    offset = cluster.next_offset - 1
    assert cluster.heartbeats.promised_ms(1, offset, cluster.now_ms) == 0, "a majority has confirmed nothing yet"

    cluster.heartbeats.leadership_confirmed(cluster.now_ms - 320)
    cluster.heartbeats.leadership_confirmed(cluster.now_ms - 500)  # a late answer

    assert cluster.heartbeats.promised_ms(1, offset, cluster.now_ms) == timeout_ms - 350, (
        "in steps of 50 ms, never too much"
    )
    assert cluster.heartbeats.promised_ms(1, offset, cluster.now_ms + timeout_ms) == 0
    (reply, _) = cluster.heartbeat(1)
    assert reply.session_ms == timeout_ms - 350
    (reply, _) = cluster.heartbeat(1, want_fence=True)
    assert (reply.is_fenced, reply.session_ms) == (True, 0)


def test_session_is_not_promised_before_the_broker_knows_what_was_elected_while_it_was_fenced() -> None:
    cluster = SmallCluster()
    cluster.heartbeats.leadership_confirmed(cluster.now_ms)
    stale = cluster.next_offset - 1
    cluster.heartbeat(1, want_fence=True)

    (reply, _) = cluster.heartbeat(1)
    assert (reply.is_fenced, reply.session_ms) == (False, 0), "it is unfenced by this heartbeat"
    (reply, _) = cluster.heartbeat(1, current_metadata_offset=stale)
    assert (reply.is_fenced, reply.session_ms) == (False, 0), "it still takes itself for what it was"
    (reply, _) = cluster.heartbeat(1)
    assert reply.session_ms == cluster.config.session_timeout_ms
