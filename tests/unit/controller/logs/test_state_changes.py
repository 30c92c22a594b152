"""The lines of the state-change log: what two states come to, and when they are told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from quorate.controller.background.shared import MASS_RECORDS
from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.partition_changes import partition_changes
from quorate.controller.logs.state_changes import BROKERS_MAX, StateChange, state_changes
from quorate.controller.logs.state_log import StateLog
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay

TOPIC, OTHER = b"t" * 16, b"u" * 16
DIRECTORIES = (b"d" * 16, b"e" * 16)
PARTITIONS = 8


def after(image: MetadataImage, *records: Any) -> MetadataImage:
    return replay(
        image, [VersionedRecord(record, 2 if isinstance(record, PartitionRecord) else 0) for record in records]
    )


def registered(broker: int, epoch: int, **fields: Any) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker, broker_epoch=epoch, incarnation_id=bytes([broker, epoch]) * 8, log_dirs=DIRECTORIES, **fields
    )


def partition(number: int, **fields: Any) -> PartitionRecord:
    usual: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2), "leader": 1, "directories": (DIRECTORIES[0],) * 3}
    return PartitionRecord(partition_id=number, topic_id=TOPIC, **{**usual, **fields})


def cluster(**fields: Any) -> MetadataImage:
    """Brokers 1 to 3, unfenced, and partitions of them in one state."""
    brokers = [registered(broker, 10 + broker, fenced=False) for broker in (1, 2, 3)]
    partitions = [partition(number, **fields) for number in range(PARTITIONS)]
    records = [FeatureLevelRecord("metadata.version", 30), *brokers, TopicRecord("foo", TOPIC), *partitions]
    return after(EMPTY_IMAGE, *records)


def change(number: int, **fields: Any) -> VersionedRecord:
    return VersionedRecord(PartitionChangeRecord(partition_id=number, topic_id=TOPIC, **fields), 2)


def changed(before: MetadataImage, **fields: Any) -> MetadataImage:
    """All partitions in the same way."""
    return replay(before, [change(number, **fields) for number in range(PARTITIONS)])


def told(old: MetadataImage, new: MetadataImage) -> dict[str, StateChange]:
    lines = [*state_changes(old, new, {2: 9_000.4}.get), *partition_changes(old, new)]
    assert len({line.event for line in lines}) == len(lines)
    return {line.event: line for line in lines}


FIRST = [f"foo-{number}" for number in range(5)]
ALL: dict[str, Any] = {"count": PARTITIONS, "first": FIRST}


@pytest.mark.parametrize(
    ("before", "fields", "lines"),
    [
        ({}, {"leader": 2}, {"leaders.moved": {**ALL, "from_elr": 0, "from_none": 0}}),
        (
            {"isr": (), "leader": -1, "eligible_leader_replicas": (3,)},
            {"leader": 3, "isr": (3,), "eligible_leader_replicas": ()},
            {
                "leaders.moved": {**ALL, "from_elr": PARTITIONS, "from_none": PARTITIONS},
                "isr.grown": ALL,
            },
        ),
        (
            {"isr": (), "leader": -1, "last_known_elr": (3,)},
            {"leader": 3, "isr": (3,), "last_known_elr": (), "leader_recovery_state": 1},
            {"leaders.moved_uncleanly": {**ALL, "last_known": PARTITIONS}, "isr.grown": ALL},
        ),
        (
            {"isr": (), "leader": -1, "eligible_leader_replicas": (3,), "leader_recovery_state": 1},
            {"leader": 3, "isr": (3,), "eligible_leader_replicas": ()},
            {"leaders.moved": {**ALL, "from_elr": PARTITIONS, "from_none": PARTITIONS}, "isr.grown": ALL},
        ),
        (
            {"isr": (1,)},
            {"leader": 3, "isr": (3,), "leader_recovery_state": 1},
            {"leaders.moved_uncleanly": {**ALL, "last_known": 0}},
        ),
        (
            {"isr": (1,)},
            {"leader": -1, "isr": (), "eligible_leader_replicas": (1,)},
            {"leaders.lost": ALL, "isr.shrunk": {**ALL, "to_one": 0, "to_none": PARTITIONS}},
        ),
        ({}, {"isr": (1,)}, {"isr.shrunk": {**ALL, "to_one": PARTITIONS, "to_none": 0}}),
        ({}, {"isr": (1, 2, 3)}, {"isr.grown": ALL}),
        (
            {},
            {"replicas": (1, 2, 3, 4), "adding_replicas": (4,), "removing_replicas": (3,)},
            {"reassignments.begun": ALL},
        ),
    ],
)  # fmt: skip
def test_partitions_are_counted_by_what_became_of_them(
    before: dict[str, Any], fields: dict[str, Any], lines: dict[str, Any]
) -> None:
    old = cluster(**before)
    found = told(old, changed(old, **fields))
    assert {event: line.fields for event, line in found.items()} == lines
    warned = {event for event, line in found.items() if line.level == "warning"}
    assert warned == lines.keys() & {"leaders.lost", "leaders.moved_uncleanly"}


@pytest.mark.parametrize(
    ("adding", "removing", "replicas", "event"),
    [
        ((4,), (3,), (1, 2, 4), "completed"),
        ((4,), (3,), (1, 2, 3), "cancelled"),
        ((4,), (), (1, 2, 3, 4), "completed"),
        ((4,), (), (1, 2, 3), "cancelled"),
        ((), (3,), (1, 2), "completed"),
        ((), (3,), (1, 2, 3), "cancelled"),
    ],
)
def test_reassignment_that_ended_is_completed_or_cancelled(
    adding: tuple[int, ...], removing: tuple[int, ...], replicas: tuple[int, ...], event: str
) -> None:
    begun = changed(cluster(), replicas=(1, 2, 3, *adding), adding_replicas=adding, removing_replicas=removing)
    ended = changed(begun, replicas=replicas, adding_replicas=(), removing_replicas=())
    assert {name: line.fields for name, line in told(begun, ended).items()} == {f"reassignments.{event}": ALL}


def test_brokers_are_told_one_by_one() -> None:
    old = cluster()
    fenced = after(old, FenceBrokerRecord(2, 12))
    assert told(old, fenced)["broker.fenced"].fields == {"broker": 2, "broker_epoch": 12, "not_heard_ms": 9_000}
    assert told(fenced, after(fenced, UnfenceBrokerRecord(2, 12)))["broker.unfenced"].fields == {
        "broker": 2,
        "broker_epoch": 12,
    }
    leaving = after(old, BrokerRegistrationChangeRecord(3, 13, in_controlled_shutdown=1))
    assert told(old, leaving)["broker.shutting_down"].fields == {"broker": 3, "broker_epoch": 13}
    gone = told(old, after(old, UnregisterBrokerRecord(3, 13)))["broker.left"]
    assert (gone.fields, gone.level) == ({"broker": 3, "broker_epoch": 13, "was_fenced": False}, "warning")
    failed = told(old, after(old, BrokerRegistrationChangeRecord(1, 11, log_dirs=DIRECTORIES[1:])))
    fields = {"broker": 1, "broker_epoch": 11, "count": 1, "first": [uuid_text(DIRECTORIES[0])], "left": 1}
    assert failed["broker.directories_failed"].fields == fields
    back = told(old, after(old, registered(1, 99, rack="a")))
    assert back["broker.registered"].fields["is_known_incarnation"] is False
    assert (back["broker.registered"].fields["rack"], "broker.fenced" in back) == ("a", True)


def test_many_brokers_are_so_many_lines_and_one() -> None:
    many = BROKERS_MAX + 30
    new = after(EMPTY_IMAGE, *(registered(broker, 1) for broker in range(many)))
    lines = list(state_changes(EMPTY_IMAGE, new, lambda broker: None))
    assert [line.event for line in lines] == ["broker.registered"] * (BROKERS_MAX + 1)
    assert lines[-1].fields == {"others": 30, "first": [20, 21, 22, 23, 24]}


def test_topics_configs_and_features_are_counted_and_named() -> None:
    old = cluster()
    more = [replace(partition(number), topic_id=OTHER) for number in range(3)]
    created = after(old, TopicRecord("bar", OTHER), *more, ConfigRecord(TOPIC_RESOURCE, "bar", "retention.ms", "5"))
    lines = {event: line.fields for event, line in told(old, created).items()}
    assert lines == {
        "topics.created": {"count": 1, "first": ["bar"], "partitions": 3},
        "configs.changed": {"count": 1, "first": ["topic/bar"], "removed": 0},
    }
    deleted = told(created, after(created, RemoveTopicRecord(OTHER)))
    assert deleted["topics.deleted"].fields == {"count": 1, "first": ["bar"], "partitions": 3}
    grown = told(old, after(old, partition(PARTITIONS)))
    assert grown["topics.grown"].fields == {"count": 1, "first": [f"foo-{PARTITIONS}"]}
    raised = told(old, after(old, FeatureLevelRecord("metadata.version", 29)))
    assert raised["feature.changed"].fields == {"feature": "metadata.version", "from_level": 30, "to_level": 29}


@pytest.mark.parametrize(
    ("record", "event", "name"),
    [
        (RegisterControllerRecord(2), "controllers.registered", "2"),
        (ClientQuotaRecord((EntityData("user", "ana"),), "producer_byte_rate", 1.0), "quotas.changed", "user/ana"),
        (AccessControlEntryRecord(OTHER), "acls.changed", uuid_text(OTHER)),
        (UserScramCredentialRecord("ana", 1), "users.changed", "ana"),
        (DelegationTokenRecord(token_id="token-1"), "tokens.changed", "token-1"),
    ],
)
def test_every_other_part_of_the_state_has_a_line(record: Any, event: str, name: str) -> None:
    old = cluster()
    lines = {event: line.fields for event, line in told(old, after(old, record)).items()}

    assert lines == {event: {"count": 1, "first": [name], "removed": 0}}


# --- when it is told ---------------------------------------------------------------------------------


@dataclass
class Watched:
    """``controller.logs.state_log.Observed``."""

    stable: MetadataImage
    is_active: bool = True
    log_start: int = 0


def looks(watched: Watched, state: StateLog, *times: float) -> list[str]:
    """The events that are told when it looks at these times."""
    with capture_logs() as lines:
        for time in times:
            state.look(time)
    return [line["event"] for line in lines]


def log_of(watched: Watched) -> StateLog:
    return StateLog(watched, lambda broker: None, lambda: watched.log_start)


def test_what_moves_is_told_when_it_rests_or_after_a_second() -> None:
    watched = Watched(cluster())
    state = log_of(watched)
    assert looks(watched, state, 10.0) == []
    watched.stable = one = changed(watched.stable, leader=2)
    assert looks(watched, state, 10.1) == []
    assert looks(watched, state, 10.2, 10.3) == ["leaders.moved"]
    for step in range(10):
        watched.stable = changed(watched.stable, leader=1 + step % 2)
        assert looks(watched, state, 20.0 + step / 10) == []
    watched.stable = changed(one, leader=3, isr=(3,))
    assert looks(watched, state, 21.0) == ["leaders.moved", "isr.shrunk"]


def so_many_after(image: MetadataImage, before: MetadataImage, records: int) -> MetadataImage:
    """The image, so many records after another one."""
    end = before.provenance.last_contained_offset + records
    return image._replace(provenance=image.provenance._replace(last_contained_offset=end))


def test_mass_change_is_told_when_it_is_over_and_its_partitions_after_a_minute() -> None:
    watched = Watched(cluster())
    state = log_of(watched)

    def moved(leader: int, records: int) -> MetadataImage:
        return so_many_after(changed(watched.stable, leader=leader, isr=(leader,)), watched.stable, records)

    for step in range(600):
        watched.stable = moved(1 + step % 3, MASS_RECORDS)
        assert looks(watched, state, 10.0 + step / 10) == [], step
    watched.stable = moved(2, MASS_RECORDS)
    assert looks(watched, state, 70.1) != [], "it lasts for more than a minute"
    watched.stable = moved(3, MASS_RECORDS)
    assert looks(watched, state, 80.0) == []
    watched.stable = moved(1, MASS_RECORDS - 1)
    assert looks(watched, state, 81.9) == []
    assert looks(watched, state, 82.0) != [], "it is over"
    watched.stable = moved(2, MASS_RECORDS)
    assert looks(watched, state, 150.0) == []
    watched.is_active = False
    assert looks(watched, state, 150.1) != [], "another one would tell it no more"


def test_broker_that_is_fenced_in_a_mass_change_is_told_after_ten_seconds() -> None:
    watched = Watched(cluster())
    state = log_of(watched)
    fenced = after(watched.stable, BrokerRegistrationChangeRecord(3, 13, fenced=1))
    watched.stable = so_many_after(fenced, watched.stable, MASS_RECORDS)
    assert looks(watched, state, 10.0) == []
    for step in range(1, 100):
        watched.stable = so_many_after(changed(watched.stable, leader=1 + step % 2), watched.stable, MASS_RECORDS)
        assert looks(watched, state, 10.0 + step / 10) == [], step
    watched.stable = so_many_after(changed(watched.stable, leader=1), watched.stable, MASS_RECORDS)
    assert looks(watched, state, 20.0) == ["broker.fenced"]
    watched.stable = so_many_after(changed(watched.stable, leader=2), watched.stable, 1)
    assert looks(watched, state, 22.0, 22.1) == ["leaders.moved"], "and nothing twice"


def test_standby_says_nothing_and_whoever_becomes_active_not_what_was_before() -> None:
    watched = Watched(EMPTY_IMAGE, is_active=False)
    state = log_of(watched)
    watched.stable = cluster()
    assert looks(watched, state, 1.0, 1.2) == []
    watched.is_active = True
    assert looks(watched, state, 1.3, 1.4) == []
    watched.stable = changed(watched.stable, leader=2)
    watched.is_active = False
    assert looks(watched, state, 1.5, 1.6) == ["leaders.moved"]


def test_line_names_who_asked_for_what_has_committed() -> None:
    watched = Watched(cluster())
    state = log_of(watched)
    looks(watched, state, 1.0)
    end = watched.stable.provenance.end_offset
    for number in range(3):
        state.note(DecidedWrite("elect_leaders", Origin("User:ana", "10.0.0.1", "a"), end, end + 1 + number, None))
    state.note(DecidedWrite("balance_leaders", None, end, end + 1, None))
    state.note(DecidedWrite("create_topics", Origin("User:bo", "10.0.0.1", "b"), end, 10**6, None))
    new = changed(watched.stable, leader=2)
    watched.stable = new._replace(provenance=new.provenance._replace(last_contained_offset=end + 5, epoch=7))
    with capture_logs() as lines:
        state.look(1.1)
        state.look(1.2)
    (line,) = lines
    assert (line["events"], line["by"]) == (["elect_leaders", "balance_leaders"], ["User:ana"])
    assert (line["offset"], line["epoch"], line["log_level"]) == (end + 6, 7, "info")


def test_line_names_nobody_whose_request_was_lost_with_an_earlier_leadership() -> None:
    watched = Watched(cluster())
    state = log_of(watched)
    end = watched.stable.provenance.end_offset
    state.note(DecidedWrite("delete_topics", Origin("User:ana", "10.0.0.1", "a"), end, end + 1, None))
    for is_active in (True, False, True):
        watched.is_active = is_active
        assert looks(watched, state, 1.0) == []
    watched.stable = so_many_after(changed(watched.stable, leader=2), watched.stable, 1)
    with capture_logs() as lines:
        state.look(2.0)
        state.look(2.1)
    assert [(line["event"], line["events"], line["by"]) for line in lines] == [("leaders.moved", [], [])]


def test_every_line_about_a_broker_can_be_told() -> None:
    watched = Watched(EMPTY_IMAGE)
    state = log_of(watched)
    looks(watched, state, 1.0)
    watched.stable = registered_only = after(EMPTY_IMAGE, registered(1, 1, fenced=False))
    assert looks(watched, state, 2.0, 2.1) == ["broker.registered", "broker.unfenced"]
    watched.stable = after(registered_only, FenceBrokerRecord(1, 1), BrokerRegistrationChangeRecord(1, 1, log_dirs=()))
    assert looks(watched, state, 3.0, 3.1) == ["broker.fenced"]
    watched.stable = after(watched.stable, UnregisterBrokerRecord(1, 1))
    assert looks(watched, state, 4.0, 4.1) == ["broker.left"]


def test_log_that_is_cut_is_told_by_every_controller() -> None:
    watched = Watched(EMPTY_IMAGE, is_active=False)
    state = log_of(watched)
    watched.log_start = 500
    assert looks(watched, state, 1.0, 1.1) == ["log.cut"]
