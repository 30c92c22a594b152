"""Reading rows of pages: one as a ``Partition``, many as columns, or searching all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import NO_LEADER
from quorate.snapshots.table.directories import DirectoryDictionary
from quorate.snapshots.table.pages import (
    COLUMNS,
    EPOCH_COLUMNS,
    EPOCH_TYPE,
    LIST_COLUMNS,
    NO_BROKER,
    NO_PARTITION,
    NO_SLOT,
    PAGE_SHIFT,
    AnyColumn,
    Page,
    Rows,
    Span,
    ascending_rows,
    blank_column,
    gathered_type,
    spans,
)
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.reassignment import has_moving
from quorate.snapshots.table.slot_layout import PREFERRED_SLOT, IdColumns


def read_partition(page: Page, local: int, directories: DirectoryDictionary) -> Partition:
    """The partition in one row of a page."""
    slots = page.slots[:, local].tolist()
    count = page.replica_counts.item(local)
    leader_slot = page.leader_slots.item(local)
    return Partition(
        replicas=tuple(slots[:count]),
        directories=tuple(map(directories.uuid, page.directories[:count, local].tolist())),
        isr=tuple([slots[slot] for slot in page.isr_order[:, local].tolist() if slot != NO_SLOT]),
        elr=_brokers(slots, page.elr.item(local)),
        last_known_elr=_brokers(slots, page.last_known_elr.item(local)),
        adding_replicas=_brokers(slots, page.adding.item(local)),
        removing_replicas=_brokers(slots, page.removing.item(local)),
        leader=NO_LEADER if leader_slot < 0 else slots[leader_slot],
        leader_recovery_state=page.recovery_states.item(local),
        leader_epoch=page.leader_epochs.item(local),
        partition_epoch=page.partition_epochs.item(local),
    )


def _brokers(slots: list[int], mask: int) -> tuple[int, ...]:
    if not mask:
        return ()
    return tuple(sorted(broker for slot, broker in enumerate(slots) if mask >> slot & 1))


def gather(pages: Sequence[Page], rows: Rows, names: Iterable[str] = COLUMNS) -> dict[str, AnyColumn]:
    """Copies of columns of strictly ascending rows; lists as ``[width, n]``, wide enough for all pages touched."""
    return gather_spans(pages, list(spans(rows)), len(rows), names)


def gather_in_any_order(pages: Sequence[Page], rows: Rows, names: Iterable[str] = COLUMNS) -> dict[str, AnyColumn]:
    """As ``gather``, of rows in any order, each as often as it is asked for."""
    if (rows[1:] > rows[:-1]).all():
        return gather(pages, rows, names)
    ascending, positions = ascending_rows(rows)
    columns = gather(pages, ascending, names)
    return {name: column.take(positions, axis=int(name in LIST_COLUMNS)) for name, column in columns.items()}


def gather_spans(pages: Sequence[Page], touched: list[Span], count: int, names: Iterable[str]) -> dict[str, AnyColumn]:
    """As ``gather``, of rows that have been cut into pages already."""
    if len(touched) == 1:
        number, local, _ = touched[0]
        return {name: _taken(getattr(pages[number], name), local, name) for name in names}
    width = max((pages[number].width for number, _, _ in touched), default=1)
    return {name: _gather_column(pages, touched, count, name, width) for name in names}


def _taken(values: AnyColumn, local: slice | NDArray[np.int64], name: str) -> AnyColumn:
    """A copy of some rows of one page."""
    if name in EPOCH_COLUMNS:
        return values[local].astype(EPOCH_TYPE)
    axis = int(name in LIST_COLUMNS)
    if isinstance(local, slice):
        return (values[:, local] if axis else values[local]).copy()
    return values.take(local, axis=axis)


def _gather_column(pages: Sequence[Page], touched: list[Span], count: int, name: str, width: int) -> AnyColumn:
    blank, kind = blank_column(name, width), gathered_type(name, width)
    sources = [getattr(pages[number], name) for number, _, _ in touched]
    if name not in LIST_COLUMNS:
        if len(sources) > 1 and all(source is blank for source in sources):
            return np.full((count, *blank.shape[1:]), blank[0], kind)
        column = np.empty((count, *blank.shape[1:]), kind)
        for values, (_, local, at) in zip(sources, touched, strict=True):
            if isinstance(local, slice):
                column[at] = values[local]
            elif values.dtype == column.dtype:
                # Never outside of the page; the other modes would work on a copy. Indexing is 30 times slower for
                # topic ids.
                values.take(local, axis=0, out=column[at], mode="clip")
            else:
                column[at] = values.take(local, axis=0)
        return column
    lists = np.empty((width, count), kind)
    for values, (_, local, at) in zip(sources, touched, strict=True):
        is_slice = isinstance(local, slice)
        lists[: len(values), at] = values[:, local] if is_slice else values.take(local, axis=1, mode="clip")
        if len(values) < width:
            lists[len(values) :, at] = LIST_COLUMNS[name][1]
    return lists


def used_rows(pages: Sequence[Page], first_row: int, row_end: int) -> Iterator[tuple[int, int]]:
    """The stretches, first row and exclusive end, of some rows that do not lie in blank pages; none is above a page."""
    while first_row < row_end:
        number = first_row >> PAGE_SHIFT
        page_end = min((number + 1) << PAGE_SHIFT, row_end)
        if not pages[number].is_blank:
            yield first_row, page_end
        first_row = page_end


def used_stretches(pages: Sequence[Page], extents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The stretches of some extents (int64[n, 2]: first row, size) that do not lie in blank pages.

    Returns:
        int64[m, 2], first row and size of each, in the order of the extents; and int64[m], the extent that it is of.
    """
    stretches: list[tuple[int, int]] = []
    owners: list[int] = []
    for owner, (first_row, size) in enumerate(extents.tolist()):
        for first_used, end in used_rows(pages, first_row, first_row + size):
            stretches.append((first_used, end - first_used))
            owners.append(owner)
    return np.array(stretches, np.int64).reshape(-1, 2), np.array(owners, np.int64)


def search(pages: Sequence[Page], predicate: Callable[[Page], NDArray[np.bool_]]) -> Rows:
    """int64[n], ascending: the rows for which ``predicate`` is true among the rows of their page; of no blank page."""
    parts = [
        np.flatnonzero(predicate(page)) + (number << PAGE_SHIFT)
        for number, page in enumerate(pages)
        if not page.is_blank
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def holds_partition(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows that hold a partition."""
    holds: NDArray[np.bool_] = page.partition_ids != NO_PARTITION
    return holds


def has_replica(page: Page, broker: int) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows with the broker among the replicas."""
    found = np.zeros(len(page.partition_ids), np.bool_)
    for slot, brokers in enumerate(page.slots):
        found |= (brokers == broker) & (page.replica_counts > slot)
    return found


def has_in_set(page: Page, name: str, broker: int) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows with the broker in one of the mask columns."""
    masks: AnyColumn = getattr(page, name)
    if masks is blank_column(name, page.width):
        return np.zeros(len(masks), np.bool_)
    is_there = page.slots == broker
    is_there &= (masks & _slot_bits(page.width, masks.dtype)) != 0
    is_member: NDArray[np.bool_] = np.logical_or.reduce(is_there, axis=0)
    return is_member


@cache
def _slot_bits(width: int, kind: np.dtype[Any]) -> AnyColumn:
    """The mask of each slot: [width, 1]."""
    return np.array([[1 << slot] for slot in range(width)], kind)


def has_leader(page: Page, broker: int) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows that the broker leads; ``NO_LEADER`` asks for rows without a leader."""
    if broker == NO_LEADER:
        return holds_partition(page) & (page.leader_slots < 0)
    found = np.zeros(len(page.partition_ids), np.bool_)
    for slot, brokers in enumerate(page.slots):
        found |= (brokers == broker) & (page.leader_slots == slot)
    return found


def is_leaderless(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows whose partition has no leader."""
    return has_leader(page, NO_LEADER)


def is_not_led_by_preferred(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows whose leader is not the first replica, or that have no leader."""
    return holds_partition(page) & ~is_led_by_preferred(page)


def is_led_by_preferred(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows led by their preferred leader."""
    is_preferred: NDArray[np.bool_] = (page.leader_slots == PREFERRED_SLOT) & (page.replica_counts > 0)
    return is_preferred


def is_reassigning(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: rows with an open reassignment."""
    return has_moving(page.adding, page.removing)


def ids_of(columns: dict[str, AnyColumn]) -> IdColumns:
    """Gathered columns with brokers by id instead of by slot."""
    slots, counts = columns["slots"], columns["replica_counts"]
    replica_count = int(counts.max(initial=0))
    is_replica = np.arange(replica_count)[:, None] < counts
    leader_slots = columns["leader_slots"]
    leaders = np.take_along_axis(slots, np.maximum(leader_slots, 0).astype(np.intp)[None], axis=0)[0]
    return IdColumns(
        replicas=np.where(is_replica, slots[:replica_count], np.int32(NO_BROKER)),
        directories=columns["directories"][:replica_count],
        isr=_listed(slots, columns["isr_order"]),
        elr=_masked(slots, columns["elr"]),
        last_known_elr=_masked(slots, columns["last_known_elr"]),
        adding=_masked(slots, columns["adding"]),
        removing=_masked(slots, columns["removing"]),
        leader=np.where(leader_slots < 0, np.int32(NO_LEADER), leaders),
    )


def _listed(slots: NDArray[np.int32], order: NDArray[np.uint8]) -> NDArray[np.int32]:
    used = order[: int((order != NO_SLOT).sum(axis=0).max(initial=0))]
    listed = np.take_along_axis(slots, np.where(used == NO_SLOT, 0, used).astype(np.intp), axis=0)
    return np.where(used == NO_SLOT, np.int32(NO_BROKER), listed)


def _masked(slots: NDArray[np.int32], masks: AnyColumn) -> NDArray[np.int32]:
    """The members of sets, ``[k, n]``: for each slot that is in any set, who has it in the rows where it is in."""
    any_mask = int(np.bitwise_or.reduce(masks))
    members = [slot for slot in range(len(slots)) if any_mask >> slot & 1]
    if not members:
        return np.empty((0, len(masks)), np.int32)
    bits = np.array([1 << slot for slot in members], masks.dtype)[:, None]
    return np.where((masks & bits) != 0, slots[members], np.int32(NO_BROKER))
