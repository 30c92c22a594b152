"""The version tables of a small log, folded row by row: what the tests of jobs over versions stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from metadata_log.batch import iter_records
from metadata_log.ids import uuid_text
from metadata_log.reader import classify, iter_batches
from metadata_log.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from pipeline.inputs import find_inputs

INTS = pa.list_(pa.int32())
STAMP = pa.timestamp("us", "UTC")
VALID = [
    ("valid_from_offset", pa.int64()),
    ("valid_to_offset", pa.int64()),
    ("valid_from", STAMP),
    ("valid_to", STAMP),
    ("change", pa.string()),
    ("record_offset", pa.int64()),
    ("removed", pa.bool_()),
]
PARTITIONS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("topic_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", INTS),
        ("isr", INTS),
        ("removing_replicas", INTS),
        ("adding_replicas", INTS),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("partition_epoch", pa.int32()),
        ("leader_recovery_state", pa.int8()),
        ("directories", pa.list_(pa.string())),
        ("eligible_leader_replicas", INTS),
        ("last_known_elr", INTS),
        *VALID,
    ]
)
BROKERS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("broker_id", pa.int32()),
        ("broker_epoch", pa.int64()),
        ("incarnation_id", pa.string()),
        ("rack", pa.string()),
        ("fenced", pa.bool_()),
        ("in_controlled_shutdown", pa.bool_()),
        ("log_dirs", pa.list_(pa.string())),
        *VALID,
    ]
)
TOPICS = pa.schema([("cluster_id", pa.string()), ("topic_id", pa.string()), ("topic", pa.string()), *VALID])
CONFIGS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("resource_type", pa.int32()),
        ("resource", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        *VALID,
    ]
)


class Versions:
    """Open and closed versions of one kind."""

    def __init__(self) -> None:
        self.open: dict[Any, dict[str, Any]] = {}
        self.rows: list[dict[str, Any]] = []

    def put(self, key: Any, state: dict[str, Any], offset: int, time: datetime, change: str) -> None:
        self.close(key, offset, time, removed=False)
        row = dict(
            state,
            valid_from_offset=offset,
            valid_to_offset=None,
            valid_from=time,
            valid_to=None,
            record_offset=offset,
            change=change,
            removed=False,
        )
        self.open[key] = row
        self.rows.append(row)

    def close(self, key: Any, offset: int, time: datetime, *, removed: bool) -> None:
        row = self.open.pop(key, None)
        if row is not None:
            row.update(valid_to_offset=offset, valid_to=time, removed=removed)


def write(logs: Sequence[Path], out: Path) -> None:
    """Write partition_versions, broker_versions and config_versions of these logs, which are one, below ``out``."""
    found = find_inputs([str(log) for log in logs]) if logs else []
    fold = Fold(found[0].cluster_id if found else "none")
    for segment in (segment for cluster in found for segment in cluster.segments):
        for batch in iter_batches(classify(Path(segment.name))):
            for logged in iter_records(batch.data):
                fold.take(logged.record, logged.offset, datetime.fromtimestamp(logged.timestamp / 1000, UTC))
    for name, versions, schema in (
        ("partition_versions", fold.partitions, PARTITIONS),
        ("broker_versions", fold.brokers, BROKERS),
        ("config_versions", fold.configs, CONFIGS),
        ("topic_versions", fold.names, TOPICS),
    ):
        (out / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(versions.rows, schema), out / name / "part-0.parquet")


class Fold:
    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.partitions, self.brokers, self.configs, self.names = Versions(), Versions(), Versions(), Versions()
        self.topics: dict[bytes, str] = {}

    def take(self, record: Any, offset: int, time: datetime) -> None:
        self.take_partition(record, offset, time)
        self.take_broker(record, offset, time)
        if isinstance(record, ConfigRecord):
            key = (record.resource_type, record.resource_name, record.name)
            self.configs.close(key, offset, time, removed=record.value is None)
            if record.value is not None:
                row = dict(zip(("resource_type", "resource", "name", "value"), (*key, record.value), strict=True))
                self.configs.put(key, {"cluster_id": self.cluster, **row}, offset, time, "changed")

    def take_partition(self, record: Any, offset: int, time: datetime) -> None:
        if isinstance(record, TopicRecord):
            self.topics[record.topic_id] = record.name
            topic = {"cluster_id": self.cluster, "topic_id": uuid_text(record.topic_id), "topic": record.name}
            self.names.put(record.topic_id, topic, offset, time, "created")
        elif isinstance(record, PartitionRecord):
            row = {"cluster_id": self.cluster, "topic": self.topics[record.topic_id], **plain(record)}
            row["partition"] = row.pop("partition_id")
            self.partitions.put((record.topic_id, record.partition_id), row, offset, time, "created")
        elif isinstance(record, PartitionChangeRecord):
            row = dict(self.partitions.open[record.topic_id, record.partition_id])
            row["partition_epoch"] += 1
            row["leader_epoch"] += record.leader != NO_LEADER_CHANGE
            row.update(said(record))
            self.partitions.put((record.topic_id, record.partition_id), row, offset, time, "changed")
        elif isinstance(record, RemoveTopicRecord):
            name = self.topics.pop(record.topic_id)
            self.names.close(record.topic_id, offset, time, removed=True)
            for key in [key for key in self.partitions.open if key[0] == record.topic_id]:
                self.partitions.close(key, offset, time, removed=True)
            for config in [config for config in self.configs.open if config[:2] == (2, name)]:
                self.configs.close(config, offset, time, removed=True)

    def take_broker(self, record: Any, offset: int, time: datetime) -> None:
        if isinstance(record, RegisterBrokerRecord):
            row = {"cluster_id": self.cluster, **plain(record)}
            self.brokers.put(record.broker_id, row, offset, time, "created")
        elif isinstance(record, BrokerRegistrationChangeRecord):
            row = dict(self.brokers.open[record.broker_id])
            if record.fenced:
                row["fenced"] = record.fenced == 1
            row["in_controlled_shutdown"] |= record.in_controlled_shutdown == 1
            if record.log_dirs:
                row["log_dirs"] = [uuid_text(directory) for directory in record.log_dirs]
            self.brokers.put(record.broker_id, row, offset, time, "changed")
        elif isinstance(record, UnregisterBrokerRecord):
            self.brokers.close(record.broker_id, offset, time, removed=True)


def said(record: PartitionChangeRecord) -> dict[str, Any]:
    """The fields that a change sets."""
    row = {name: value for name, value in plain(record).items() if getattr(record, name) is not None}
    del row["topic_id"], row["partition_id"]
    if record.leader == NO_LEADER_CHANGE:
        del row["leader"]
    if record.leader_recovery_state == NO_RECOVERY_CHANGE:
        del row["leader_recovery_state"]
    return row


def plain(record: Any) -> dict[str, Any]:
    """The fields of a record as a table has them."""
    found: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple):
            value = [uuid_text(one) if isinstance(one, bytes) else one for one in value]
        elif isinstance(value, bytes):
            value = uuid_text(value)
        elif value is None and field.name in ("eligible_leader_replicas", "last_known_elr"):
            value = []
        found[field.name] = value
    return found
