"""Records in the form of the vectors: only fields that say something, with symbolic names instead of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quorate.controller.configs.resources import RESOURCE_TYPES
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.scripts.conformance_runner.names import Names
from quorate.snapshots.table.partition import Partition

Form = dict[str, Any]

RECOVERY_STATES: Final = ("RECOVERED", "RECOVERING")
RESOURCE_NAMES: Final = {number: name for name, number in RESOURCE_TYPES.items()}
_UNCHANGED_LEADER: Final = -2


def record_form(versioned: VersionedRecord, names: Names) -> Form:
    """The record as the vectors write it."""
    record = versioned.record
    return {"type": type(record).__name__, "version": versioned.version, **_FORMS[type(record)](record, names)}


def record_of_form(form: Form) -> VersionedRecord:
    """A record of a scenario's beginning."""
    records: dict[str, Callable[[], Record]] = {
        "BeginTransactionRecord": lambda: BeginTransactionRecord(form["name"]),
        "EndTransactionRecord": EndTransactionRecord,
        "FeatureLevelRecord": lambda: FeatureLevelRecord(form["name"], form["level"]),
        "ConfigRecord": lambda: ConfigRecord(
            RESOURCE_TYPES[form["resource_type"]], form["resource_name"], form["name"], form["value"]
        ),
    }
    return VersionedRecord(records[form["type"]](), form["version"])


def change_form(record: PartitionChangeRecord, names: Names) -> Form:
    """The changes of a PartitionChangeRecord, without the partition's name."""
    form: Form = {
        "isr": record.isr,
        "replicas": record.replicas,
        "removing_replicas": record.removing_replicas,
        "adding_replicas": record.adding_replicas,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
    }
    form = {name: list(value) for name, value in form.items() if value is not None}
    if record.leader != _UNCHANGED_LEADER:
        form["leader"] = record.leader
    if record.leader_recovery_state >= 0:
        form["leader_recovery_state"] = RECOVERY_STATES[record.leader_recovery_state]
    if record.directories is not None:
        form["directories"] = [names.name(directory) for directory in record.directories]
    return form


def partition_form(partition: Partition, names: Names) -> Form:
    """The state of a partition, without its name."""
    return {
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding_replicas": list(partition.adding_replicas),
        "removing_replicas": list(partition.removing_replicas),
        "elr": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
        "leader": partition.leader,
        "leader_recovery_state": RECOVERY_STATES[partition.leader_recovery_state],
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "directories": [names.name(directory) for directory in partition.directories],
    }


def _partition_change(record: Any, names: Names) -> Form:
    return {
        "topic_id": names.name(record.topic_id),
        "partition": record.partition_id,
        **change_form(record, names),
    }


def _partition(record: Any, names: Names) -> Form:
    return {
        "topic_id": names.name(record.topic_id),
        "partition": record.partition_id,
        **partition_form(Partition.from_record(record), names),
    }


def _register_broker(record: Any, names: Names) -> Form:
    return {
        "broker": record.broker_id,
        "incarnation": names.name(record.incarnation_id),
        "broker_epoch": record.broker_epoch,
        "rack": record.rack,
        "fenced": record.fenced,
        "in_controlled_shutdown": record.in_controlled_shutdown,
        "log_dirs": [names.name(directory) for directory in record.log_dirs],
    }


def _broker_change(record: Any, names: Names) -> Form:
    form = {"broker": record.broker_id, "broker_epoch": record.broker_epoch}
    if record.fenced:
        form["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        form["in_controlled_shutdown"] = True
    if record.log_dirs:
        form["log_dirs"] = [names.name(directory) for directory in record.log_dirs]
    return form


def _config(record: Any, _: Names) -> Form:
    return {
        "resource_type": RESOURCE_NAMES[record.resource_type],
        "resource_name": record.resource_name,
        "name": record.name,
        "value": record.value,
    }


_FORMS: Final[dict[type, Callable[[Any, Names], Form]]] = {
    RegisterBrokerRecord: _register_broker,
    UnregisterBrokerRecord: lambda r, _: {"broker": r.broker_id, "broker_epoch": r.broker_epoch},
    BrokerRegistrationChangeRecord: _broker_change,
    TopicRecord: lambda r, names: {"name": r.name, "topic_id": names.name(r.topic_id)},
    RemoveTopicRecord: lambda r, names: {"topic_id": names.name(r.topic_id)},
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition_change,
    ConfigRecord: _config,
    ClearElrRecord: lambda r, _: {"topic_name": r.topic_name},
    FeatureLevelRecord: lambda r, _: {"name": r.name, "level": r.feature_level},
}
