"""Versions of a history against the controllers' own images, for tests of the kernel and of the job."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.image.image import MetadataImage

Row = dict[str, Any]
#: By table: what a row is a version of.
KEYS = {
    "partition_versions": ("topic_id", "partition"),
    "broker_versions": ("broker_id",),
    "topic_versions": ("topic_id",),
    "config_versions": ("resource_type", "resource", "name"),
}


def valid_at(rows: list[Row], keys: tuple[str, ...], offset: int) -> dict[Any, Row]:
    """The versions that are valid in the state of all records below an offset; each key has one at most."""
    found: dict[Any, Row] = {}
    for row in rows:
        if row["valid_from_offset"] < offset and (row["valid_to_offset"] is None or row["valid_to_offset"] >= offset):
            key = tuple(row[name] for name in keys)
            assert key not in found, f"two versions of {key} at {offset}"
            found[key] = row
    return found


def require_state(tables: dict[str, list[Row]], image: MetadataImage, offset: int) -> None:
    """What the tables say of an offset is what the image is."""
    valid = {name: valid_at(tables[name], keys, offset) for name, keys in KEYS.items()}
    assert {key: partition_of(row) for key, row in valid["partition_versions"].items()} == partitions_of(image)
    assert {key: (row["topic"],) for key, row in valid["topic_versions"].items()} == {
        (uuid_text(topic.id),): (topic.name,) for topic in image.topics.by_id.values()
    }
    assert {key: broker_of(row) for key, row in valid["broker_versions"].items()} == brokers_of(image)
    assert {key: row["value"] for key, row in valid["config_versions"].items()} == {
        (kind, resource, name): value
        for (kind, resource), configs in image.configs.resources.items()
        for name, value in configs.items()
    }


def partition_of(row: Row) -> tuple[Any, ...]:
    return (
        row["topic"],
        row["replicas"],
        row["isr"],
        sorted(row["removing_replicas"]),
        sorted(row["adding_replicas"]),
        row["leader"],
        row["leader_epoch"],
        row["partition_epoch"],
        row["leader_recovery_state"],
        row["directories"],
        sorted(row["eligible_leader_replicas"]),
        sorted(row["last_known_elr"]),
    )


def partitions_of(image: MetadataImage) -> dict[Any, tuple[Any, ...]]:
    return {
        (uuid_text(topic.id), number): (
            topic.name,
            list(p.replicas),
            list(p.isr),
            list(p.removing_replicas),
            list(p.adding_replicas),
            p.leader,
            p.leader_epoch,
            p.partition_epoch,
            p.leader_recovery_state,
            [uuid_text(directory) for directory in p.directories],
            list(p.elr),
            list(p.last_known_elr),
        )
        for topic in image.topics.by_id.values()
        for number, p in image.partitions.partitions_of(topic.id)
    }


def broker_of(row: Row) -> tuple[Any, ...]:
    return (
        row["broker_epoch"],
        row["incarnation_id"],
        row["rack"],
        row["fenced"],
        row["in_controlled_shutdown"],
        sorted(row["log_dirs"]),
        sorted(end_point["name"] for end_point in row["end_points"]),
    )


def brokers_of(image: MetadataImage) -> dict[Any, tuple[Any, ...]]:
    return {
        (broker.id,): (
            broker.epoch,
            uuid_text(broker.incarnation_id),
            broker.rack,
            broker.is_fenced,
            broker.in_controlled_shutdown,
            sorted(uuid_text(directory) for directory in broker.directories),
            sorted(listener.name for listener in broker.listeners),
        )
        for broker in image.cluster.brokers.values()
    }


def require_no_gaps(tables: dict[str, list[Row]]) -> None:
    """Versions of one thing follow each other: each begins where the one before ends, unless that was removed."""
    for name, keys in KEYS.items():
        by_key: dict[Any, list[Row]] = {}
        for row in tables[name]:
            by_key.setdefault(tuple(row[key] for key in keys), []).append(row)
        for key, rows in by_key.items():
            rows.sort(key=lambda row: row["record_offset"])
            for before, after in pairwise(rows):
                where = f"{name} {key}: {before} {after}"
                assert before["valid_from_offset"] <= before["valid_to_offset"] <= after["valid_from_offset"], where
                assert before["removed"] or before["valid_to_offset"] == after["valid_from_offset"], where
                assert before["removed"] == (after["change"] == "created"), where
                assert before["removed"] or before["valid_to"] == after["valid_from"], where
            assert (rows[-1]["valid_to_offset"] is None) != rows[-1]["removed"], f"{name} {key}: {rows[-1]}"


def changes_of(rows: list[Row]) -> Counter[str]:
    """How many versions there are of each kind."""
    return Counter(row["change"] for row in rows)
