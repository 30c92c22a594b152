"""``partition_change``: one partition, what is asked of it, the record that follows, and the partition after it."""

from __future__ import annotations

from typing import Any, Final

from quorate.metadata_log.records.records import PartitionChangeRecord, VersionedRecord
from quorate.scripts.conformance_runner.comparison import ELR_SETS, Difference, differences
from quorate.scripts.conformance_runner.kinds.partition_cases import case_of_vector, change_records, settings_of_vector
from quorate.scripts.conformance_runner.names import Names
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form, change_form, partition_form
from quorate.snapshots.table.partition import RECOVERED, RECOVERING, Partition

#: Some vectors ask for adding and removing replicas in an odd order, which no request leads to: they are sets here,
#: and come out by id, as in everything that Kafka's controller writes.
_SETS: Final = (*ELR_SETS, "adding_replicas", "removing_replicas")


def run_vector(vector: Any) -> VectorOutcome:
    """Through the kernel, its records, and replay's rules."""
    names = Names()
    expected = vector["expected"]
    try:
        (record,) = change_records([case_of_vector(vector)], settings_of_vector(vector), names)
    except ValueError as refusal:
        # Kafka's class stops at these with errors of Java's own, whose names mean nothing here.
        found = [] if "exception" in expected else [Difference("", expected, f"refused: {refusal}")]
        return VectorOutcome(vector["id"], found)
    return VectorOutcome(vector["id"], differences(expected, _outcome(vector, record, names), sets=_SETS))


def _outcome(vector: Any, versioned: VersionedRecord | None, names: Names) -> Form:
    if versioned is None:
        return {"record": None, "partition_after": None}
    change = versioned.record
    assert isinstance(change, PartitionChangeRecord)
    after = _partition(vector["input"]["partition"], names).changed_by(change)
    return {
        "record": change_form(change, names),
        "record_version": versioned.version,
        "partition_after": partition_form(after, names),
    }


def _partition(form: Form, names: Names) -> Partition:
    return Partition(
        replicas=tuple(form["replicas"]),
        directories=tuple(names.id(name) for name in form["directories"]),
        isr=tuple(form["isr"]),
        elr=tuple(form["elr"]),
        last_known_elr=tuple(form["last_known_elr"]),
        adding_replicas=tuple(form["adding_replicas"]),
        removing_replicas=tuple(form["removing_replicas"]),
        leader=form["leader"],
        leader_recovery_state=RECOVERING if form["leader_recovery_state"] == "RECOVERING" else RECOVERED,
        leader_epoch=form["leader_epoch"],
        partition_epoch=form["partition_epoch"],
    )
