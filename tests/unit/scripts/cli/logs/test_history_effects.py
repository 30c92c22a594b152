"""Changes of a request in words."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.scripts.cli.logs.history_effects import effect
from quorate.snapshots.difference.difference_entries import Entry, entry_of

_PARTITION = {
    "leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3], "elr": [], "last_known_elr": [], "adding_replicas": [],
    "removing_replicas": [], "leader_recovery_state": 0, "leader_epoch": 0, "partition_epoch": 0, "directories": ["a"],
}  # fmt: skip
_BROKER = {"incarnation_id": "i", "fenced": False, "in_controlled_shutdown": False, "log_dirs": ["a", "b"]}


def changed(name: str, base: dict[str, Any], *sides: dict[str, Any]) -> Entry:
    """An entry that is so on one side, and so on the other, beside what is as always."""
    old, new = ({**base, **side} for side in sides)
    entry = entry_of(name, old, new)
    assert entry is not None
    return entry


def partition(name: str, new: dict[str, Any], old: dict[str, Any] | None = None) -> tuple[str, Entry]:
    return "partitions", changed(name, _PARTITION, old or {}, {"partition_epoch": 1, **new})


def added(part: str, name: str, fields: dict[str, Any]) -> tuple[str, Entry]:
    entry = entry_of(name, None, fields)
    assert entry is not None
    return part, entry


def removed(part: str, name: str, fields: dict[str, Any]) -> tuple[str, Entry]:
    entry = entry_of(name, fields, None)
    assert entry is not None
    return part, entry


def test_topic_is_told_with_its_partitions_and_replicas() -> None:
    partitions = [added("partitions", f"a-{number}", _PARTITION) for number in range(6)]
    assert (
        effect([added("topics", "a", {"id": "x", "partitions": 6}), *partitions]) == "topic a created: 6 partitions x 3"
    )
    gone = [removed("topics", "a", {"id": "x"}), removed("partitions", "a-0", _PARTITION)]
    assert effect(gone) == "topic a deleted: 1 partition x 3"
    several = [added("topics", name, {"id": name}) for name in "abcde"]
    assert effect([*several, *partitions]) == "topics a, b, c, ... (5) created with 6 partitions"
    assert effect(partitions[4:]) == "topic a has 2 partitions more"


def test_broker_is_told_with_what_its_partitions_lost() -> None:
    moved = [partition(f"a-{number}", {"leader": 3, "leader_epoch": 1, "isr": [3, 1]}) for number in range(4)]
    offline = [partition(f"b-{number}", {"leader": -1, "leader_epoch": 1}) for number in range(2)]
    fenced = ("brokers", changed("2", _BROKER, {}, {"fenced": True}))
    assert effect([*moved, *offline, fenced]) == (
        "broker 2 fenced; 2 partitions offline; 4 partitions changed leader; 4 partitions lost in-sync replicas"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, {"fenced": True}, "fenced"),
        ({"fenced": True}, {}, "unfenced"),
        ({}, {"in_controlled_shutdown": True}, "shuts down"),
        ({}, {"in_controlled_shutdown": True, "fenced": True}, "shuts down and fenced"),
        ({}, {"incarnation_id": "j", "fenced": True}, "registered again"),
        ({}, {"log_dirs": ["a"]}, "lost 1 log directory"),
        ({}, {"log_dirs": ["a", "b", "c"]}, "has other log directories"),
        ({"epoch": 1}, {"epoch": 2}, "changed in epoch"),
    ],
)
def test_event_of_a_broker_is_read_from_its_registration(old: dict[str, Any], new: dict[str, Any], said: str) -> None:
    assert effect([("brokers", changed("7", _BROKER, old, new))]) == f"broker 7 {said}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, {"leader": 2, "leader_epoch": 1}, "a-0 changed leader (1 -> 2)"),
        ({"leader": -1}, {"leader_epoch": 1}, "a-0 led again (by 1)"),
        ({"leader": -1}, {"leader_recovery_state": 1}, "a-0 elected uncleanly"),
        (
            {"leader": -1, "last_known_elr": [2]},
            {"leader": 2, "leader_recovery_state": 1, "last_known_elr": []},
            "a-0 led by the last known leader again, uncleanly; a-0 changed their eligible leaders",
        ),
        (
            {"leader": -1, "last_known_elr": [2]},
            {"leader": 3, "leader_recovery_state": 1, "last_known_elr": []},
            "a-0 elected uncleanly; a-0 changed their eligible leaders",
        ),
        ({}, {"leader": -1, "isr": []}, "a-0 offline; a-0 lost in-sync replicas (now none)"),
        ({}, {"leader_epoch": 1}, "a-0 elected the same leader again"),
        ({"isr": [1]}, {}, "a-0 gained in-sync replicas (now 1,2,3)"),
        ({}, {"adding_replicas": [4], "replicas": [1, 2, 3, 4]}, "reassignment of a-0 begun"),
        ({"adding_replicas": [4], "replicas": [1, 2, 3, 4]}, {}, "reassignment of a-0 cancelled"),
        ({"adding_replicas": [3]}, {}, "reassignment of a-0 ended"),
        ({"removing_replicas": [3]}, {}, "reassignment of a-0 cancelled"),
        ({"removing_replicas": [4], "replicas": [1, 2, 3, 4]}, {}, "reassignment of a-0 ended"),
        (
            {"adding_replicas": [3], "removing_replicas": [4], "replicas": [3, 1, 2, 4]},
            {},
            "reassignment of a-0 ended",
        ),
        (
            {"adding_replicas": [4], "removing_replicas": [3], "replicas": [4, 1, 2, 3]},
            {},
            "reassignment of a-0 cancelled",
        ),
        ({}, {"replicas": [2, 1, 3]}, "reassignment of a-0 changed"),
        ({}, {"elr": [2]}, "a-0 changed their eligible leaders"),
        ({}, {"directories": ["b"]}, "directories of a-0 assigned"),
        ({"leader_recovery_state": 1}, {}, "a-0 recovered"),
        ({}, {}, ""),
    ],
)
def test_change_of_a_partition_is_told_by_what_it_means(old: dict[str, Any], new: dict[str, Any], said: str) -> None:
    assert effect([partition("a-0", new, old)]) == said


def test_change_whose_values_are_not_told_is_told_as_one() -> None:
    for part, noun in (("scram", "SCRAM credential"), ("voters", "voter"), ("controllers", "controller")):
        assert effect([(part, changed("it", {}, {"key": "5"}, {"key": "6"}))]) == f"{noun} it changed"


def test_values_are_told_up_to_a_length_and_names_up_to_a_number() -> None:
    config = ("configs", changed("topic/a", {}, {"retention.ms": "5"}, {"retention.ms": "6"}))
    assert effect([config]) == "config topic/a: retention.ms 5 -> 6"
    long = effect([added("configs", "topic/a", {"cleanup.policy": "x" * 500})])
    assert (long.endswith("x..."), len(long) < 200) == (True, True)
    acls = [added("acls", f"ALLOW {name}", {"id": name}) for name in "abcde"]
    assert effect(acls) == "ACL ALLOW a added; ACL ALLOW b added; ACL ALLOW c added; and 2 more"
