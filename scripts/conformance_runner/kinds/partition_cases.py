"""One partition and what is asked of it, as plain lists; and its way into and out of the kernel's columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.metadata_version import partition_version
from quorate.controller.partitions.columns import (
    ELECT_ONLINE,
    ELECT_PREFERRED,
    ELECT_UNCLEAN,
    NO_SLOT,
    PADDING,
    Masks,
    Orders,
    PartitionRows,
    PartitionTargets,
)
from quorate.controller.partitions.rules import RuleSettings, decide_changes
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.metadata_log.ids import UUID_BYTES
from quorate.metadata_log.records.records import PartitionChangeRecord, VersionedRecord
from quorate.scripts.conformance_runner.names import Names
from quorate.scripts.conformance_runner.record_form import Form, change_form

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
    #: "*" stands for the broker id: the directory that a new replica gets; None = nobody can say where replicas are.
    default_directory: str | None = "d*.5"

    def default_of(self, broker: int) -> str | None:
        """The directory that a new replica on this broker gets."""
        return None if self.default_directory is None else self.default_directory.replace("*", str(broker))


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
        default_directory="d*.5" if given["default_dir_provider"] else None,
    )


def settings_of_vector(vector: dict[str, Any]) -> RuleSettings:
    given = vector["input"]
    return RuleSettings(
        metadata_version=given["metadata_version_level"],
        is_elr_enabled=given["elr_enabled"],
        elects_last_known_leader=given["use_last_known_leader"],
    )


def slot_brokers(case: PartitionCase) -> list[int]:
    """The broker of each slot: target replicas in order, then whoever else is mentioned."""
    target_replicas = case.replicas if case.target_replicas is None else case.target_replicas
    mentioned = [*target_replicas, *case.replicas, *case.isr, *(case.target_isr or ()), *case.elr]
    mentioned += [*case.last_known_elr, *case.adding, *case.removing]
    mentioned += [*(case.target_adding or ()), *(case.target_removing or ())]
    return list(dict.fromkeys(mentioned))


def decide_cases(cases: list[PartitionCase], settings: RuleSettings) -> list[Form]:
    """The kernel's changes in each case, in the form of the vectors' records; {} = nothing."""
    names = Names()
    return [
        {} if versioned is None else change_form(_change(versioned), names)
        for versioned in change_records(cases, settings, names)
    ]


def change_records(cases: list[PartitionCase], settings: RuleSettings, names: Names) -> list[VersionedRecord | None]:
    """The record that each case leads to; None = nothing changes."""
    layout = _CaseLayout(cases, names)
    changes = decide_changes(layout.rows(), layout.targets(), settings)
    count = len(cases)
    partitions = PartitionNames(
        topic_ids=np.zeros((count, UUID_BYTES), np.uint8),
        partition_ids=np.arange(count, dtype=np.int32),
        brokers=layout.brokers,
        leaders=np.array([case.leader for case in cases], np.int32),
    )
    version = partition_version(settings.metadata_version)
    records: list[VersionedRecord | None] = [None] * count
    for run in change_runs(partitions, changes, layout.directory_ids, version):
        for row in range(len(run)):
            record = run.record(row)
            records[record.partition_id] = VersionedRecord(record, run.version)
    return records


def _change(versioned: VersionedRecord) -> PartitionChangeRecord:
    assert isinstance(versioned.record, PartitionChangeRecord)
    return versioned.record


class _CaseLayout:
    """Cases as columns: the kernel's slots are the case's brokers."""

    def __init__(self, cases: list[PartitionCase], names: Names) -> None:
        self._cases = cases
        slots = [slot_brokers(case) for case in cases]
        self._slot_of = [{broker: slot for slot, broker in enumerate(brokers)} for brokers in slots]
        self._width = max(1, *map(len, slots))
        directories = sorted({name for case in cases for name in _directory_names(case)})
        self._codes = {name: code for code, name in enumerate(directories)}
        ids = b"".join(names.id(name) for name in directories)
        #: uint8[d, 16]
        self.directory_ids = np.frombuffer(ids, np.uint8).reshape(-1, UUID_BYTES)
        #: int32[n, w]
        self.brokers = np.full((len(cases), self._width), -1, np.int32)
        for row, brokers in enumerate(slots):
            self.brokers[row, : len(brokers)] = brokers

    def rows(self) -> PartitionRows:
        cases = self._cases
        leaders = [at.get(c.leader, -1) if c.leader >= 0 else -1 for at, c in zip(self._slot_of, cases, strict=True)]
        return PartitionRows(
            replicas=self._masks([c.replicas for c in cases]),
            isr=self._masks([c.isr for c in cases]),
            isr_order=self._orders([c.isr for c in cases]),
            removing=self._masks([c.removing for c in cases]),
            adding=self._masks([c.adding for c in cases]),
            elr=self._masks([c.elr for c in cases]),
            last_known_elr=self._masks([c.last_known_elr for c in cases]),
            leader=np.array(leaders, np.int64),
            is_recovering=np.array([c.is_recovering for c in cases]),
            directories=self._directories([{} for _ in cases]),
            replica_order=self._orders([c.replicas for c in cases]),
        )

    def targets(self) -> PartitionTargets:
        cases = self._cases
        isr = [c.isr if c.target_isr is None else c.target_isr for c in cases]
        recovering = [c.is_recovering if c.target_is_recovering is None else c.target_is_recovering for c in cases]
        return PartitionTargets(
            acceptable=self._masks([c.acceptable for c in cases]),
            min_isr=np.array([c.min_isr for c in cases]),
            election=np.array([ELECTIONS[c.election] for c in cases]),
            isr=self._masks(isr),
            isr_order=self._orders(isr),
            replicas=self._masks([c.replicas if c.target_replicas is None else c.target_replicas for c in cases]),
            removing=self._masks([c.removing if c.target_removing is None else c.target_removing for c in cases]),
            adding=self._masks([c.adding if c.target_adding is None else c.target_adding for c in cases]),
            is_recovering=np.array(recovering),
            unclean_shutdown=self._masks([c.unclean_shutdown for c in cases]),
            directories=self._target_directories(),
        )

    def _masks(self, sets: list[Any]) -> Masks:
        found = zip(self._slot_of, sets, strict=True)
        return np.array([sum(1 << at[broker] for broker in set(ids) if broker in at) for at, ids in found], np.uint64)

    def _orders(self, lists: list[list[int]]) -> Orders:
        order = np.full((len(lists), self._width), NO_SLOT, np.uint8)
        for row, (at, ids) in enumerate(zip(self._slot_of, lists, strict=True)):
            order[row, : len(ids)] = [at[broker] for broker in ids]
        return order

    def _directories(self, changed: list[dict[int, str]]) -> NDArray[np.int32]:
        """The directory of each slot; -1 where there is none for it."""
        codes = np.full((len(self._cases), self._width), PADDING, np.int32)
        for row, (at, case, replaced) in enumerate(zip(self._slot_of, self._cases, changed, strict=True)):
            own = dict(zip(case.replicas, case.directories, strict=True)) | replaced
            for broker, slot in at.items():
                codes[row, slot] = self._codes.get(own.get(broker) or case.default_of(broker) or "", PADDING)
        return codes

    def _target_directories(self) -> NDArray[np.int32]:
        codes = self._directories([case.set_directories for case in self._cases])
        codes[[case.default_directory is None for case in self._cases]] = PADDING
        return codes


def _directory_names(case: PartitionCase) -> list[str]:
    new = [case.default_of(broker) for broker in case.target_replicas or ()]
    return [*case.directories, *case.set_directories.values(), *(name for name in new if name is not None)]
