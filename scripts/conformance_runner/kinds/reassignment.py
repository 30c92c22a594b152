"""``reassignment``: how one starts, when it completes, what cancelling it leaves."""

from __future__ import annotations

from typing import Any

from quorate.controller.partitions.rules import RuleSettings
from quorate.controller.topics.reassignment_rules import revert_reassignment, start_reassignment
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.scripts.conformance_runner.comparison import differences
from quorate.scripts.conformance_runner.kinds.partition_cases import PartitionCase, change_records
from quorate.scripts.conformance_runner.names import Names
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form
from quorate.snapshots.table.reassignment import Assignment

_RULES = RuleSettings(metadata_version=30, is_elr_enabled=False)


def run_vector(vector: Any) -> VectorOutcome:
    """By the rules that requests use, and by the kernel for completion."""
    outcome = {"start": _start, "complete": _complete, "revert": _revert}[vector["input"]["kind"]](vector["input"])
    return VectorOutcome(vector["id"], differences(vector["expected"], outcome, ignores=("class", "message")))


def _start(given: Form) -> Form:
    started = start_reassignment(tuple(given["current"]), tuple(given["target"]))
    return {
        "replicas": list(started.replicas),
        "removing_replicas": list(started.removing),
        "adding_replicas": list(started.adding),
        "in_progress": started.is_open,
        "original_replicas": list(started.original_replicas),
    }


def _assignment(given: Form) -> Assignment:
    return Assignment(tuple(given["replicas"]), tuple(given["adding_replicas"]), tuple(given["removing_replicas"]))


def _complete(given: Form) -> Form:
    assignment = _assignment(given)
    return {
        "in_progress": assignment.is_open,
        "original_replicas": list(assignment.original_replicas),
        "completed": _completed(given),
    }


def _completed(given: Form) -> Form | None:
    """The kernel's decision for a partition whose leader asks for this ISR, and whose replicas may all lead."""
    case = PartitionCase(
        replicas=given["replicas"],
        isr=given["target_isr"],
        leader=next(iter(given["target_isr"]), -1),
        directories=["UNASSIGNED"] * len(given["replicas"]),
        adding=given["adding_replicas"],
        removing=given["removing_replicas"],
        acceptable=frozenset(given["replicas"]),
    )
    (versioned,) = change_records([case], _RULES, Names())
    if versioned is None:
        return None
    change = versioned.record
    assert isinstance(change, PartitionChangeRecord)
    if change.adding_replicas != () and change.removing_replicas != ():
        return None
    replicas = case.replicas if change.replicas is None else list(change.replicas)
    return {"replicas": replicas, "isr": case.isr if change.isr is None else list(change.isr)}


def _revert(given: Form) -> Form:
    assignment = _assignment(given)
    try:
        reverted = revert_reassignment(assignment, tuple(given["isr"]))
    except ApiError as refusal:
        return {"in_progress": assignment.is_open, "exception": {"error": refusal.code.name}}
    return {
        "in_progress": assignment.is_open,
        "replicas": list(reverted.replicas),
        "isr": list(reverted.isr),
        "unclean": reverted.is_unclean,
    }
