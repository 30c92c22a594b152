"""One partition and what is asked of it, as plain lists; and its way into and out of the kernel's columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controller.partition_columns import (
    ELECT_ONLINE,
    ELECT_PREFERRED,
    ELECT_UNCLEAN,
    LAST_KNOWN_CLEARED,
    LAST_KNOWN_SET,
    NO_SLOT,
    PartitionChanges,
    PartitionRows,
    PartitionTargets,
)
from controller.partition_rules import RuleSettings, decide_changes

ELECTIONS = {None: ELECT_ONLINE, "ONLINE": ELECT_ONLINE, "PREFERRED": ELECT_PREFERRED, "UNCLEAN": ELECT_UNCLEAN}


@dataclass(frozen=True, slots=True)
class PartitionCase:
    """A partition, and the targets of one change; None = as the partition has it. Brokers are ids."""

    replicas: list[int]
    isr: list[int]
    leader: int
    directories: list[str]
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    elr: list[int] = field(default_factory=list)
    last_known_elr: list[int] = field(default_factory=list)
    is_recovering: bool = False
    acceptable: frozenset[int] = frozenset()
    election: str | None = None
    min_isr: int = 1
    target_isr: list[int] | None = None
    target_replicas: list[int] | None = None
    target_removing: list[int] | None = None
    target_adding: list[int] | None = None
    target_is_recovering: bool | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    #: Directory of single replicas, as a request names them.
    set_directories: dict[int, str] = field(default_factory=dict)
    #: "*" stands for the broker id: the directory that a new replica gets.
    default_directory: str = "d*.5"


def case_of_vector(vector: dict[str, Any]) -> PartitionCase:
    """The case of one line of the partition_change vectors."""
    given, partition = vector["input"], vector["input"]["partition"]
    recovery = given["target_leader_recovery_state"]
    return PartitionCase(
        replicas=partition["replicas"],
        isr=partition["isr"],
        leader=partition["leader"],
        directories=partition["directories"],
        adding=partition["adding_replicas"],
        removing=partition["removing_replicas"],
        elr=partition["elr"],
        last_known_elr=partition["last_known_elr"],
        is_recovering=partition["leader_recovery_state"] == "RECOVERING",
        acceptable=frozenset(given["acceptable_leaders"]),
        election=given["election"],
        min_isr=given["min_isr"],
        target_isr=given["target_isr"],
        target_replicas=given["target_replicas"],
        target_removing=given["target_removing"],
        target_adding=given["target_adding"],
        target_is_recovering=None if recovery is None else recovery == "RECOVERING",
        unclean_shutdown=frozenset(given["unclean_shutdown_replicas"] or ()),
        set_directories={int(broker): name for broker, name in given["set_directories"].items()},
    )


def settings_of_vector(vector: dict[str, Any]) -> RuleSettings:
    given = vector["input"]
    return RuleSettings(
        metadata_version=given["metadata_version_level"],
        is_elr_enabled=given["elr_enabled"],
    )


def slot_brokers(case: PartitionCase) -> list[int]:
    """The broker of each slot: target replicas in order, then whoever else is mentioned."""
    target_replicas = case.replicas if case.target_replicas is None else case.target_replicas
    mentioned = [*target_replicas, *case.replicas, *case.isr, *(case.target_isr or ()), *case.elr]
    mentioned += [*case.last_known_elr, *case.adding, *case.removing]
    mentioned += [*(case.target_adding or ()), *(case.target_removing or ())]
    return list(dict.fromkeys(mentioned))


def decide_cases(cases: list[PartitionCase], settings: RuleSettings) -> list[dict[str, Any]]:
    """What the kernel changes in each case, in the form of the vectors' records; {} = nothing."""
    brokers = [slot_brokers(case) for case in cases]
    width = max(1, *(len(slots) for slots in brokers))
    names = sorted({name for case in cases for name in _directory_names(case)})
    codes = {name: code for code, name in enumerate(names)}
    rows, targets = _columns(cases, brokers, width, codes)
    changes = decide_changes(rows, targets, settings)
    return [
        _change_of_row(changes, row, case, slots, names)
        for row, (case, slots) in enumerate(zip(cases, brokers, strict=True))
    ]


def _directory_names(case: PartitionCase) -> list[str]:
    new = [case.default_directory.replace("*", str(broker)) for broker in case.target_replicas or ()]
    return [*case.directories, *new, *case.set_directories.values()]


def _columns(
    cases: list[PartitionCase], brokers: list[list[int]], width: int, codes: dict[str, int]
) -> tuple[PartitionRows, PartitionTargets]:
    count = len(cases)
    at = [{broker: slot for slot, broker in enumerate(slots)} for slots in brokers]

    def masks(sets: list[Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        values = [sum(1 << at[i][b] for b in set(ids) if b in at[i]) for i, ids in enumerate(sets)]
        return np.array(values, np.uint64)

    def orders(lists: list[list[int]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
        order = np.full((count, width), NO_SLOT, np.uint8)
        for i, ids in enumerate(lists):
            order[i, : len(ids)] = [at[i][b] for b in ids]
        return order

    def target(name: str, own: str) -> list[Any]:
        return [getattr(c, own) if getattr(c, name) is None else getattr(c, name) for c in cases]

    directories = np.zeros((count, width), np.int32)
    target_directories = np.zeros((count, width), np.int32)
    for i, case in enumerate(cases):
        own = dict(zip(case.replicas, case.directories, strict=True))
        for broker, slot in at[i].items():
            default = case.default_directory.replace("*", str(broker))
            directories[i, slot] = codes.get(own.get(broker, default), 0)
            wanted = case.set_directories.get(broker, own.get(broker, default))
            target_directories[i, slot] = codes.get(wanted, 0)
    rows = PartitionRows(
        replicas=masks([c.replicas for c in cases]),
        isr=masks([c.isr for c in cases]),
        isr_order=orders([c.isr for c in cases]),
        removing=masks([c.removing for c in cases]),
        adding=masks([c.adding for c in cases]),
        elr=masks([c.elr for c in cases]),
        last_known_elr=masks([c.last_known_elr for c in cases]),
        leader=np.array([at[i].get(c.leader, -1) if c.leader >= 0 else -1 for i, c in enumerate(cases)]),
        is_recovering=np.array([c.is_recovering for c in cases]),
        directories=directories,
        replica_order=orders([c.replicas for c in cases]),
    )
    targets = PartitionTargets(
        acceptable=masks([c.acceptable for c in cases]),
        min_isr=np.array([c.min_isr for c in cases]),
        election=np.array([ELECTIONS[c.election] for c in cases]),
        isr=masks(target("target_isr", "isr")),
        isr_order=orders(target("target_isr", "isr")),
        replicas=masks(target("target_replicas", "replicas")),
        removing=masks(target("target_removing", "removing")),
        adding=masks(target("target_adding", "adding")),
        is_recovering=np.array(target("target_is_recovering", "is_recovering")),
        unclean_shutdown=masks([c.unclean_shutdown for c in cases]),
        directories=target_directories,
    )
    return rows, targets


def _change_of_row(
    changes: PartitionChanges, row: int, case: PartitionCase, slots: list[int], names: list[str]
) -> dict[str, Any]:
    def ids(mask: Any) -> list[int]:
        return [broker for slot, broker in enumerate(slots) if int(mask) >> slot & 1]

    change: dict[str, Any] = {}
    if changes.has_leader[row]:
        slot = int(changes.leader[row])
        change["leader"] = slots[slot] if slot >= 0 else -1
    if changes.has_isr[row]:
        change["isr"] = [slots[slot] for slot in changes.isr_order[row] if slot != NO_SLOT]
    if changes.has_elr[row]:
        change["elr"] = sorted(ids(changes.elr[row]))
    if changes.last_known_elr[row] == LAST_KNOWN_CLEARED:
        change["last_known_elr"] = []
    if changes.last_known_elr[row] == LAST_KNOWN_SET:
        change["last_known_elr"] = [case.leader]
    if changes.has_recovery[row]:
        change["leader_recovery_state"] = "RECOVERING" if changes.is_recovering[row] else "RECOVERED"
    if changes.has_replicas[row]:
        change["replicas"] = ids(changes.replicas[row])
    if changes.has_removing[row]:
        change["removing_replicas"] = sorted(ids(changes.removing[row]))
    if changes.has_adding[row]:
        change["adding_replicas"] = sorted(ids(changes.adding[row]))
    if changes.has_directories[row]:
        change["directories"] = [names[code] for code in changes.directories[row] if code >= 0]
    assert bool(change) == bool(changes.has_change[row]), (change, case)
    return change
