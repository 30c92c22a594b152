"""Runs: mass records of one shape as numpy columns.

A *shape* is which optional fields are present and how long each array is. Records of one shape have their constant
bytes at the same places, so a run is written and read column by column, never record by record.
A run is a way of reading, not a semantic: it stands for its records in the order of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.records.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
    VersionedRecord,
)

IntColumn = npt.NDArray[np.int32]
ByteColumn = npt.NDArray[np.uint8]


def _ids(column: IntColumn | None, row: int) -> tuple[int, ...] | None:
    return None if column is None else tuple(column[row].tolist())


def _uuids(column: ByteColumn | None, row: int) -> tuple[bytes, ...] | None:
    return None if column is None else tuple(uuid.tobytes() for uuid in column[row])


class _MassRun:
    """The part that both kinds of runs share. Every field that is an array has one row per record."""

    __slots__ = ()
    partition_ids: IntColumn

    def __len__(self) -> int:
        return len(self.partition_ids)

    def columns(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """The columns that are present, by name."""
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                yield name, column


@dataclass(frozen=True, slots=True, eq=False)
class PartitionChangeRun(_MassRun):
    """``n`` PartitionChangeRecords of one shape and version. An absent column is "no change"."""

    TYPE_ID: ClassVar[int] = 5

    version: int
    #: uint8[n, 16]
    topic_ids: ByteColumn
    #: int32[n]
    partition_ids: IntColumn
    #: int32[n, k] in order; k may be 0.
    isr: IntColumn | None = None
    #: int32[n]; -1 = none, -2 = unchanged in this row.
    leader: IntColumn | None = None
    #: int32[n, k] in order.
    replicas: IntColumn | None = None
    removing_replicas: IntColumn | None = None
    adding_replicas: IntColumn | None = None
    #: int8[n]; -1 = unchanged in this row.
    leader_recovery_state: npt.NDArray[np.int8] | None = None
    #: uint8[n, k, 16]
    directories: ByteColumn | None = None
    eligible_leader_replicas: IntColumn | None = None
    last_known_elr: IntColumn | None = None

    def slice(self, first: int, end: int) -> PartitionChangeRun:
        """The rows ``first`` to ``end`` (exclusive), sharing the columns' memory."""
        columns: dict[str, Any] = {name: column[first:end] for name, column in self.columns()}
        return replace(self, **columns)

    def record(self, row: int) -> PartitionChangeRecord:
        """One row as a record."""
        state = self.leader_recovery_state
        return PartitionChangeRecord(
            partition_id=int(self.partition_ids[row]),
            topic_id=self.topic_ids[row].tobytes(),
            isr=_ids(self.isr, row),
            leader=NO_LEADER_CHANGE if self.leader is None else int(self.leader[row]),
            replicas=_ids(self.replicas, row),
            removing_replicas=_ids(self.removing_replicas, row),
            adding_replicas=_ids(self.adding_replicas, row),
            leader_recovery_state=NO_RECOVERY_CHANGE if state is None else int(state[row]),
            directories=_uuids(self.directories, row),
            eligible_leader_replicas=_ids(self.eligible_leader_replicas, row),
            last_known_elr=_ids(self.last_known_elr, row),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PartitionRun(_MassRun):
    """``n`` PartitionRecords of one shape and version."""

    TYPE_ID: ClassVar[int] = 3

    version: int
    #: uint8[n, 16]
    topic_ids: ByteColumn
    #: int32[n]
    partition_ids: IntColumn
    #: int32[n, k] in order, like the next one; k may be 0 in all four.
    replicas: IntColumn
    isr: IntColumn
    removing_replicas: IntColumn
    adding_replicas: IntColumn
    #: int32[n]; -1 = none.
    leader: IntColumn
    leader_epoch: IntColumn
    partition_epoch: IntColumn
    #: uint8[n, k, 16]; None = version 0, which has none.
    directories: ByteColumn | None = None
    #: int8[n]; None = recovered.
    leader_recovery_state: npt.NDArray[np.int8] | None = None
    #: int32[n, k]; None = none.
    eligible_leader_replicas: IntColumn | None = None
    last_known_elr: IntColumn | None = None

    def slice(self, first: int, end: int) -> PartitionRun:
        """The rows ``first`` to ``end`` (exclusive), sharing the columns' memory."""
        columns: dict[str, Any] = {name: column[first:end] for name, column in self.columns()}
        return replace(self, **columns)

    def record(self, row: int) -> PartitionRecord:
        """One row as a record."""
        state = self.leader_recovery_state
        return PartitionRecord(
            partition_id=int(self.partition_ids[row]),
            topic_id=self.topic_ids[row].tobytes(),
            replicas=_ids(self.replicas, row) or (),
            isr=_ids(self.isr, row) or (),
            removing_replicas=_ids(self.removing_replicas, row) or (),
            adding_replicas=_ids(self.adding_replicas, row) or (),
            leader=int(self.leader[row]),
            leader_recovery_state=0 if state is None else int(state[row]),
            leader_epoch=int(self.leader_epoch[row]),
            partition_epoch=int(self.partition_epoch[row]),
            directories=_uuids(self.directories, row) or (),
            eligible_leader_replicas=_ids(self.eligible_leader_replicas, row),
            last_known_elr=_ids(self.last_known_elr, row),
        )


Run = PartitionRun | PartitionChangeRun

#: What a batch holds, in the order of its offsets.
BatchItem = VersionedRecord | PartitionRun | PartitionChangeRun
