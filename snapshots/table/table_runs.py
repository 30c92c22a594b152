"""Applying runs of partition records to a table, column by column: no Python object per record.

The same rules as ``Partition.from_record`` and ``Partition.changed_by``; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.batches.runs import PartitionChangeRun, PartitionRun
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.table.directories import MIGRATING_CODE
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.page_access import ids_of
from quorate.snapshots.table.pages import (
    NO_BROKER,
    NO_PARTITION,
    AnyColumn,
    Rows,
)
from quorate.snapshots.table.partition import RECOVERED, RECOVERING
from quorate.snapshots.table.slot_layout import IdColumns, SlotPlacer, lay_out, resized
from quorate.snapshots.table.table_editor import (
    PARTITIONS_PER_TOPIC_MAX,
    TableEditor,
    check_partition_number,
    unknown_partition,
)

AnyRun = TypeVar("AnyRun", PartitionRun, PartitionChangeRun)

#: Rows laid out at a time: their temporary columns stay in a processor's cache, and small enough for the allocator to
#: use the same memory again, which in a fresh process is half of the cost.
_ROWS_AT_ONCE: Final = 65536

#: Columns of a change run that are sets, and the page columns they become.
_SETS: Final = (
    ("eligible_leader_replicas", "elr"),
    ("last_known_elr", "last_known_elr"),
    ("adding_replicas", "adding"),
    ("removing_replicas", "removing"),
)


def reserve_rows(
    editor: TableEditor,
    runs: Iterable[tuple[PartitionRun, TopicStretches]],
    ahead: Iterable[tuple[PartitionRun, TopicStretches]] = (),
) -> None:
    """Reserve each topic's rows for all of these runs at once: then none has to be moved between them.

    Args:
        ahead: runs that are put later: their topics get room for these, too, where they get any now.

    Raises:
        ReplayError: a number is negative or above the most that a topic may have.
    """
    sizes: dict[Uuid, int] = {}
    width = 1
    for run, stretches in runs:
        if int(run.partition_ids.min()) < 0:
            at = int(np.argmin(run.partition_ids))
            check_partition_number(run.topic_ids[at].tobytes(), int(run.partition_ids[at]))
        for topic_id, size in _sizes(run, stretches):
            if size > sizes.get(topic_id, 0):
                sizes[topic_id] = size
        width = max(width, run.replicas.shape[1])
    for run, stretches in ahead:
        for topic_id, size in _sizes(run, stretches):
            if topic_id in sizes and sizes[topic_id] < size <= PARTITIONS_PER_TOPIC_MAX:
                sizes[topic_id] = size
    editor.reserve(sizes, width)


def _sizes(run: PartitionRun, stretches: TopicStretches) -> Iterator[tuple[Uuid, int]]:
    """The topic of each stretch, and the rows that it needs for that."""
    highest = np.maximum.reduceat(run.partition_ids, stretches.starts).astype(np.int64) + 1
    return zip(stretches.topics, highest.tolist(), strict=True)


def put_run(editor: TableEditor, run: PartitionRun, stretches: TopicStretches) -> None:
    """Declare partitions whole, new or not. Their rows have been reserved.

    Raises:
        ReplayError: duplicates in a list, directories that do not match, an unknown recovery state.
    """
    _check_ids(run)
    _check_recovery(run.leader_recovery_state, (RECOVERED, RECOVERING))
    for rows, part in _in_order(stretches.find_rows(editor.find_extents(stretches), run.partition_ids), run):
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            end = first + _ROWS_AT_ONCE
            _put_rows(editor, rows[first:end], part.slice(first, end))


def _put_rows(editor: TableEditor, rows: Rows, run: PartitionRun) -> None:
    count, replica_count = run.replicas.shape
    columns = lay_out(
        IdColumns(
            replicas=np.ascontiguousarray(run.replicas.T),
            directories=_directory_codes(editor, run.directories, replica_count, count),
            isr=np.ascontiguousarray(run.isr.T),
            elr=_optional(run.eligible_leader_replicas, count),
            last_known_elr=_optional(run.last_known_elr, count),
            adding=run.adding_replicas.T,
            removing=run.removing_replicas.T,
            leader=run.leader,
        )
    )
    held = editor.pages.gather(rows, ("partition_ids",))["partition_ids"] != NO_PARTITION
    editor.partition_count += count - int(held.sum())
    columns["topic_ids"] = run.topic_ids
    columns["partition_ids"] = run.partition_ids
    columns["leader_epochs"] = run.leader_epoch
    columns["partition_epochs"] = run.partition_epoch
    state = run.leader_recovery_state
    columns["recovery_states"] = np.zeros(count, np.int8) if state is None else state
    editor.pages.write(rows, columns)


def change_run(editor: TableEditor, run: PartitionChangeRun) -> None:
    """Change partitions: +1 partition epoch each, +1 leader epoch where a leader is named.

    Raises:
        ReplayError: an unknown partition, duplicates in a list, directories that do not match, a bad recovery state.
    """
    _check_ids(run)
    _check_recovery(run.leader_recovery_state, (NO_RECOVERY_CHANGE, RECOVERED, RECOVERING))
    rows = editor.find_rows(run.topic_ids, run.partition_ids)
    if len(rows) and int(rows.min()) < 0:
        at = int(np.argmin(rows))
        raise unknown_partition(run.topic_ids[at].tobytes(), int(run.partition_ids[at]))
    for ascending, part in _in_order(rows, run):
        editor.require_held(ascending, part.topic_ids, part.partition_ids)
        _change_rows(editor, ascending, part)


def clear_elrs(editor: TableEditor, rows: Rows) -> None:
    """Empty ELR and last-known ELR of ascending rows; partitions that have neither stay as they are."""
    names = ("elr", "last_known_elr", "topic_ids", "partition_ids")
    columns = editor.pages.gather(rows, names)
    has_any = (columns["elr"] | columns["last_known_elr"]) != 0
    count = int(has_any.sum())
    if not count:
        return
    nobody = np.empty((count, 0), np.int32)
    run = PartitionChangeRun(
        version=2,
        topic_ids=columns["topic_ids"][has_any],
        partition_ids=columns["partition_ids"][has_any],
        eligible_leader_replicas=nobody,
        last_known_elr=nobody,
    )
    _change_rows(editor, rows[has_any], run)


def _change_rows(editor: TableEditor, rows: Rows, run: PartitionChangeRun) -> None:
    """Change strictly ascending rows that all hold a partition."""
    if run.replicas is not None:
        _lay_out_again(editor, rows, run)
    else:
        columns, needs_layout = _columns_in_place(editor, rows, run)
        if not needs_layout.any():
            editor.pages.write(rows, columns)
        else:
            stays = np.flatnonzero(~needs_layout)
            editor.pages.write(rows[stays], {name: column[..., stays] for name, column in columns.items()})
            again = np.flatnonzero(needs_layout)
            _lay_out_again(editor, rows[again], _take(run, again))
    editor.pages.add(rows, "partition_epochs", np.ones(len(rows), np.int32))
    if run.leader is not None:
        editor.pages.add(rows, "leader_epochs", (run.leader != NO_LEADER_CHANGE).astype(np.int32))
    if run.leader_recovery_state is not None:
        _set_where(
            editor, rows, "recovery_states", run.leader_recovery_state, run.leader_recovery_state != NO_RECOVERY_CHANGE
        )


def _columns_in_place(
    editor: TableEditor, rows: Rows, run: PartitionChangeRun
) -> tuple[dict[str, AnyColumn], NDArray[np.bool_]]:
    """The columns that change while every row keeps its slots, and the rows that cannot: they need other slots."""
    held = editor.pages.gather(rows, ("slots", "replica_counts", "leader_slots"))
    placer = SlotPlacer(held["slots"])
    width = len(placer.slots)
    columns: dict[str, AnyColumn] = {}
    if run.isr is not None:
        order, columns["isr"] = placer.order_and_mask(run.isr.T)
        columns["isr_order"] = resized("isr_order", order, width)
    for name, column in _SETS:
        ids = getattr(run, name)
        if ids is not None:
            _, columns[column] = placer.order_and_mask(ids.T)
    if run.leader is not None:
        is_named = run.leader != NO_LEADER_CHANGE
        slots = placer.leader(np.where(is_named, run.leader, np.int32(NO_BROKER)))
        columns["leader_slots"] = np.where(is_named, slots, held["leader_slots"])
    if run.directories is not None and run.directories.shape[1]:
        length = run.directories.shape[1]
        if (held["replica_counts"] != length).any():
            raise ReplayError(f"{length} directories for another number of replicas")
        codes = _directory_codes(editor, run.directories, length, len(rows))
        columns["directories"] = resized("directories", codes, width)
    return columns, placer.unplaced | placer.rows_with_others(held["replica_counts"])


def _lay_out_again(editor: TableEditor, rows: Rows, run: PartitionChangeRun) -> None:
    """Change rows whose slots change, or may: through broker ids."""
    ids = ids_of(editor.pages.gather(rows))
    changed: dict[str, Any] = {}
    if run.replicas is not None:
        changed["replicas"] = run.replicas.T
        changed["directories"] = _kept_directories(ids, run.replicas.T)
    if run.directories is not None and run.directories.shape[1]:
        length = run.directories.shape[1]
        replicas = changed.get("replicas", ids.replicas)
        if ((replicas != NO_BROKER).sum(axis=0) != length).any():
            raise ReplayError(f"{length} directories for another number of replicas")
        codes = _directory_codes(editor, run.directories, length, len(rows))
        changed["directories"] = resized("directories", codes, len(replicas))
    if run.isr is not None:
        changed["isr"] = run.isr.T
    for name, column in _SETS:
        if getattr(run, name) is not None:
            changed[column] = getattr(run, name).T
    if run.leader is not None:
        changed["leader"] = np.where(run.leader == NO_LEADER_CHANGE, ids.leader, run.leader)
    editor.pages.write(rows, lay_out(replace(ids, **changed)))


def _kept_directories(ids: IdColumns, replicas: NDArray[np.int32]) -> NDArray[np.int32]:
    """Directories for other replicas where a record names none: kept ones, else MIGRATING."""
    codes = np.full(replicas.shape, MIGRATING_CODE, np.int32)
    for place, brokers in enumerate(replicas):
        for before, directory in zip(ids.replicas, ids.directories, strict=True):
            np.copyto(codes[place], directory, where=before == brokers)
    return codes


def _set_where(editor: TableEditor, rows: Rows, name: str, values: AnyColumn, where: NDArray[np.bool_]) -> None:
    if where.any():
        editor.pages.write(rows[where], {name: values[where]})


def _directory_codes(
    editor: TableEditor, directories: NDArray[np.uint8] | None, length: int, count: int
) -> NDArray[np.int32]:
    """int32[length, count]; all MIGRATING where a record names none.

    Raises:
        ReplayError: not one directory per replica.
    """
    if directories is None or not directories.shape[1]:
        return np.full((length, count), MIGRATING_CODE, np.int32)
    if directories.shape[1] != length:
        raise ReplayError(f"{directories.shape[1]} directories for {length} replicas")
    editor.directories, codes = editor.directories.encode(directories.reshape(-1, directories.shape[2]))
    return np.ascontiguousarray(codes.reshape(count, length).T)


def _optional(ids: NDArray[np.int32] | None, count: int) -> NDArray[np.int32]:
    return np.empty((0, count), np.int32) if ids is None else ids.T


def _check_ids(run: PartitionRun | PartitionChangeRun) -> None:
    for name, column in run.columns():
        is_ids = column.dtype == np.int32 and (column.ndim == 2 or name == "leader")
        if is_ids and column.size and int(column.min()) == NO_BROKER:
            raise ReplayError(f"{name} mentions broker {NO_BROKER}, which stands for no broker")


def _check_recovery(states: NDArray[np.int8] | None, allowed: tuple[int, ...]) -> None:
    if states is None or not len(states):
        return
    if int(states.min()) < allowed[0] or int(states.max()) > allowed[-1]:
        raise ReplayError(f"a leader recovery state is none of {allowed}")


def _in_order(rows: Rows, run: AnyRun) -> Iterator[tuple[Rows, AnyRun]]:
    """The run in parts with strictly ascending rows: a row that occurs k times is in k parts, in order."""
    if (rows[1:] > rows[:-1]).all():
        yield rows, run
        return
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    is_repeat = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    firsts = np.flatnonzero(~is_repeat)
    occurrence = np.arange(len(rows)) - np.repeat(firsts, np.diff(firsts, append=len(rows)))
    for number in range(int(occurrence.max()) + 1):
        part = np.flatnonzero(occurrence == number)
        yield ordered[part], _take(run, order[part])


def _take(run: AnyRun, index: NDArray[np.int64]) -> AnyRun:
    columns: dict[str, Any] = {name: column.take(index, axis=0) for name, column in run.columns()}
    return replace(run, **columns)
