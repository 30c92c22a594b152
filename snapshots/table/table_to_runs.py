"""Rows of a partition table as runs of PartitionRecords: how masses are written and digested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.batches.runs import PartitionRun
from quorate.snapshots.table import page_access
from quorate.snapshots.table.directories import MIGRATING_CODE
from quorate.snapshots.table.pages import MASK_COLUMNS, NO_SLOT, AnyColumn, Rows
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.record_versions import DIRECTORIES_LEVEL, ELR_LEVEL

_LARGEST: Final = 2**31 - 1
#: What the shape of a row's record depends on; below ``ELR_LEVEL`` also on its directories.
_SHAPE_COLUMNS: Final = ("replica_counts", *MASK_COLUMNS, "recovery_states")


def rows_by_shape(table: PartitionTable, rows: Rows, level: int) -> list[Rows]:
    """Ascending rows gathered by the shape of their records: each part int64[k] ascends and has one shape.

    Args:
        level: as of ``partition_runs``.
    """
    if not len(rows):
        return []
    names = _SHAPE_COLUMNS if level >= ELR_LEVEL else (*_SHAPE_COLUMNS, "directories")
    columns = page_access.gather(table.pages, rows, names)
    return [rows[group] for group in _groups(_shape_keys(columns, _versions(columns, level)))]


def partition_runs(table: PartitionTable, rows: Rows, level: int) -> Iterator[tuple[NDArray[np.int64], PartitionRun]]:
    """The partitions of ascending rows, gathered by shape: positions int64[k] among ``rows``, and their records.

    Args:
        level: of metadata.version, which decides the records' version as in ``snapshots.table.record_versions``.
    """
    columns = page_access.gather(table.pages, rows)
    versions = _versions(columns, level)
    keys = _shape_keys(columns, versions)
    if not len(rows):
        return
    for group in _groups(keys):
        part = (
            columns
            if len(group) == len(rows)
            else {name: _taken(column, name, group) for name, column in columns.items()}
        )
        yield group, _run(table, part, int(versions[group[0]]))


def _groups(keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The places of each key, ascending."""
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _taken(column: AnyColumn, name: str, index: NDArray[np.int64]) -> AnyColumn:
    return column[index] if name == "topic_ids" else column[..., index]


def _versions(columns: dict[str, AnyColumn], level: int) -> NDArray[np.int8]:
    count = len(columns["replica_counts"])
    if level >= ELR_LEVEL:
        return np.full(count, 2, np.int8)
    has_elr = (columns["elr"] | columns["last_known_elr"]) != 0
    has_directories = (columns["directories"] > MIGRATING_CODE).any(axis=0) | (level >= DIRECTORIES_LEVEL)
    return np.where(has_elr, np.int8(2), has_directories.astype(np.int8))


def _shape_keys(columns: dict[str, AnyColumn], versions: NDArray[np.int8]) -> NDArray[np.int64]:
    """Rows of one shape have one key: each count is below 128."""
    keys: NDArray[np.int64] = columns["replica_counts"].astype(np.int64)
    for name in ("isr", "elr", "last_known_elr", "adding", "removing"):
        keys = keys << 7 | np.bitwise_count(columns[name])
    keys = keys << 2 | versions
    keys <<= 1
    keys |= columns["recovery_states"] != 0
    return keys


def _run(table: PartitionTable, columns: dict[str, AnyColumn], version: int) -> PartitionRun:
    """The record run of rows that are all of one shape."""
    slots = columns["slots"]
    replica_count = int(columns["replica_counts"][0])
    isr_count = int((columns["isr_order"][:, 0] != NO_SLOT).sum())
    leader_slots = columns["leader_slots"]
    leaders = np.take_along_axis(slots, np.maximum(leader_slots, 0).astype(np.intp)[None], axis=0)[0]
    codes = columns["directories"][:replica_count]
    elr, last_known = _sorted_ids(slots, columns["elr"]), _sorted_ids(slots, columns["last_known_elr"])
    isr = np.take_along_axis(slots, columns["isr_order"][:isr_count].astype(np.intp), axis=0)
    return PartitionRun(
        version=version,
        topic_ids=columns["topic_ids"],
        partition_ids=columns["partition_ids"],
        replicas=np.ascontiguousarray(slots[:replica_count].T),
        isr=np.ascontiguousarray(isr.T),
        removing_replicas=_sorted_ids(slots, columns["removing"]),
        adding_replicas=_sorted_ids(slots, columns["adding"]),
        leader=np.where(leader_slots < 0, np.int32(-1), leaders),
        leader_epoch=columns["leader_epochs"],
        partition_epoch=columns["partition_epochs"],
        directories=table.directories.ids[codes.T] if version >= 1 else None,
        leader_recovery_state=columns["recovery_states"] if columns["recovery_states"][0] else None,
        eligible_leader_replicas=elr if elr.shape[1] else None,
        last_known_elr=last_known if last_known.shape[1] else None,
    )


def _sorted_ids(slots: NDArray[np.int32], masks: AnyColumn) -> NDArray[np.int32]:
    """int32[n, k]: the brokers of sets that all have k members, by id."""
    members = int(np.bitwise_count(masks[0]))
    if not members:
        return np.empty((len(masks), 0), np.int32)
    bits = np.left_shift(np.ones(1, masks.dtype), np.arange(len(slots), dtype=masks.dtype))[:, None]
    ids = np.where((masks & bits) != 0, slots, np.int32(_LARGEST))
    ids.sort(axis=0)
    return np.ascontiguousarray(ids[:members].T)
