"""All partitions of a cluster: a persistent, paged, columnar table.

A topic's partitions are contiguous rows, indexed by partition number, so ``(topic, partition)`` is found by one look-up
and one addition. A table is immutable; ``snapshots.table.table_editor`` makes its successors, which share every page
and column that did not change. A row number means something in one table only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.counts.tally import OFFLINE, REASSIGNING
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table import page_access
from quorate.snapshots.table.directories import DirectoryDictionary
from quorate.snapshots.table.extents import Extent, TopicStretches, reserved_rows
from quorate.snapshots.table.kept_counts import NO_COUNTS, NO_OWN_MIN_ISRS, NOT_KEPT, KeptCounts, OwnMinIsrs
from quorate.snapshots.table.pages import (
    COLUMNS,
    MASK_COLUMNS,
    NO_PARTITION,
    PAGE_ROWS,
    PAGE_SHIFT,
    Page,
    PagePredicate,
    Rows,
)
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_columns import PartitionColumns
from quorate.snapshots.table.table_difference import tables_equal

#: Partitions that are found quicker one by one than as columns.
_FEW_ROWS: Final = 4


class PartitionTable:
    """The partitions of all topics. Rows without a partition have partition id -1."""

    __slots__ = (
        "counts",
        "directories",
        "extents",
        "own_min_isrs",
        "pages",
        "partition_count",
        "reserved_rows",
        "row_end",
    )

    def __init__(
        self,
        pages: tuple[Page, ...] = (),
        extents: PersistentMap[Uuid, Extent] | None = None,
        directories: DirectoryDictionary | None = None,
        row_end: int = 0,
        reserved_rows: int = 0,
        partition_count: int = 0,
        own_min_isrs: OwnMinIsrs = NO_OWN_MIN_ISRS,
        counts: KeptCounts = NO_COUNTS,
    ) -> None:
        self.pages = pages
        #: Topics that have partitions.
        self.extents: PersistentMap[Uuid, Extent] = PersistentMap() if extents is None else extents
        self.directories = DirectoryDictionary() if directories is None else directories
        #: Exclusive end of the rows ever given to topics.
        self.row_end = row_end
        #: Rows that topics have now; the others below the end are free.
        self.reserved_rows = reserved_rows
        self.partition_count = partition_count
        #: ``own_min_isr_code`` of the topics that have a ``min.insync.replicas`` of their own: it is counted by.
        self.own_min_isrs = own_min_isrs
        self.counts = counts

    def __len__(self) -> int:
        return self.partition_count

    def __eq__(self, other: object) -> bool:
        """Equal if both hold the same partitions in the same state, wherever their rows are."""
        return tables_equal(self, other) if isinstance(other, PartitionTable) else NotImplemented

    def __hash__(self) -> int:
        raise TypeError("a table has no hash")

    def __repr__(self) -> str:
        return f"PartitionTable({self.partition_count} partitions of {len(self.extents)} topics)"

    # --- finding rows --------------------------------------------------------------------------------

    def rows_of(self, topic_id: Uuid) -> range:
        """The rows of a topic by partition number; empty for one that has none. Some may hold no partition."""
        extent = self.extents.get(topic_id)
        return range(0) if extent is None else range(extent.first_row, extent.first_row + extent.size)

    def row(self, topic_id: Uuid, partition_id: int) -> int | None:
        """The row of a partition, None if there is no such partition."""
        extent = self.extents.get(topic_id)
        if extent is None or not 0 <= partition_id < extent.size:
            return None
        row = extent.first_row + partition_id
        return None if self.partition_id(row) == NO_PARTITION else row

    def rows_for(self, topic_ids: NDArray[np.uint8], partition_ids: NDArray[np.int32]) -> Rows:
        """int64[n]: rows of the partitions (uint8[n, 16], int32[n]); -1 where there is none."""
        if len(partition_ids) <= _FEW_ROWS:
            ids = (topic_id.tobytes() for topic_id in topic_ids)
            found = map(self.row, ids, partition_ids.tolist())
            return np.array([-1 if row is None else row for row in found], np.int64)
        rows = self.reserved_rows_for(topic_ids, partition_ids)
        reserved = np.flatnonzero(rows >= 0)
        is_empty = self.gather_partition_ids(rows[reserved]) == NO_PARTITION
        rows[reserved[is_empty]] = -1
        return rows

    def reserved_rows_for(self, topic_ids: NDArray[np.uint8], partition_ids: NDArray[np.int32]) -> Rows:
        """int64[n]: as ``rows_for``; one between others of its topic that was never declared has its empty row."""
        return reserved_rows(
            self.extents, self.pages, partial(page_access.gather, self.pages), topic_ids, partition_ids
        )

    def partition_id(self, row: int) -> int:
        """The partition number in a row; -1 if it holds none."""
        return int(self.pages[row >> PAGE_SHIFT].partition_ids[row & (PAGE_ROWS - 1)])

    def topic_id(self, row: int) -> Uuid:
        """The topic of the partition in a row."""
        return bytes(self.pages[row >> PAGE_SHIFT].topic_ids[row & (PAGE_ROWS - 1)].tobytes())

    def partition(self, row: int) -> Partition:
        """The partition in a row, as a value."""
        return page_access.read_partition(self.pages[row >> PAGE_SHIFT], row & (PAGE_ROWS - 1), self.directories)

    def partitions_of(self, topic_id: Uuid) -> Iterator[tuple[int, Partition]]:
        """Numbers and values of a topic's partitions, in order. Makes Python objects: for describing."""
        rows = self.rows_of(topic_id)
        for first_row, end in page_access.used_rows(self.pages, rows.start, rows.stop):
            for row in range(first_row, end):
                if self.partition_id(row) != NO_PARTITION:
                    yield row - rows.start, self.partition(row)

    # --- many rows -----------------------------------------------------------------------------------

    def gather(self, rows: Rows | Sequence[int]) -> PartitionColumns:
        """Copies of all columns of some rows, in the order given."""
        wanted = np.asarray(rows, np.int64)
        columns = page_access.gather_in_any_order(self.pages, wanted)
        return PartitionColumns(
            rows=wanted,
            topic_ids=columns["topic_ids"],
            partition_ids=columns["partition_ids"],
            slots=columns["slots"].T,
            replica_counts=columns["replica_counts"].astype(np.int64),
            directories=columns["directories"].T,
            isr_order=columns["isr_order"].T,
            **{name: columns[name].astype(np.uint64) for name in MASK_COLUMNS},
            leader_slots=columns["leader_slots"].astype(np.int64),
            leader_epochs=columns["leader_epochs"],
            partition_epochs=columns["partition_epochs"],
            recovery_states=columns["recovery_states"],
        )

    def topics_in(self, rows: Rows) -> set[Uuid]:
        """The topics of some rows."""
        return set(TopicStretches.of(self.column(rows, "topic_ids")).topics)

    def gather_partition_ids(self, rows: Rows) -> NDArray[np.int32]:
        """int32[n]: the partition numbers in some rows, -1 where there is none."""
        return self.column(rows, "partition_ids")

    def column(self, rows: Rows, name: str) -> NDArray[Any]:
        """One column [n] of some rows as the pages hold it, lists [width, n], in the order given."""
        return page_access.gather_in_any_order(self.pages, rows, (name,))[name]

    def select(self, predicate: PagePredicate) -> Rows:
        """int64[n], ascending: rows for which ``predicate`` is true among the 4096 rows of their page.

        Empty rows have no brokers, empty sets and no leader; a predicate that holds for such rows must exclude them.
        """
        return page_access.search(self.pages, predicate)

    def select_parts(self, predicate: PagePredicate, first_row: int, row_end: int, size: int) -> Iterator[Rows]:
        """As ``select``, of the rows from one to another (exclusive), in parts int64[k] of at most ``size``.

        Each is found when it is asked for, so what it costs is looking into as many pages as it needs.
        """
        gathered = np.empty(0, np.int64)
        for number in range(first_row >> PAGE_SHIFT, min(len(self.pages), -(-row_end >> PAGE_SHIFT))):
            rows = page_access.search(self.pages[number : number + 1], predicate) + (number << PAGE_SHIFT)
            gathered = np.concatenate([gathered, rows[(rows >= first_row) & (rows < row_end)]])
            while len(gathered) >= size:
                yield gathered[:size]
                gathered = gathered[size:]
        if len(gathered):
            yield gathered

    def all_rows(self) -> Rows:
        """int64[n], ascending: every row that holds a partition, topic by topic, each in order of partition number."""
        return self.select(page_access.holds_partition)

    def held_rows(self, size: int) -> Iterator[Rows]:
        """The same in parts int64[k] of at most ``size``, each found when it is asked for."""
        pages_at_once = max(1, size >> PAGE_SHIFT)
        for first in range(0, len(self.pages), pages_at_once):
            pages = self.pages[first : first + pages_at_once]
            rows = page_access.search(pages, page_access.holds_partition) + (first << PAGE_SHIFT)
            yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def rows_with_replica(self, broker: int) -> Rows:
        """int64[n], ascending: rows with the broker among the replicas."""
        return self.select(lambda page: page_access.has_replica(page, broker))

    def rows_with_isr(self, broker: int) -> Rows:
        """int64[n], ascending: rows with the broker in the ISR."""
        return self.select(lambda page: page_access.has_in_set(page, "isr", broker))

    def rows_with_elr(self, broker: int) -> Rows:
        """int64[n], ascending: rows with the broker in the ELR."""
        return self.select(lambda page: page_access.has_in_set(page, "elr", broker))

    def rows_with_isr_or_elr(self, broker: int) -> Rows:
        """int64[n], ascending: rows with the broker in the ISR or the ELR."""

        def is_in(page: Page) -> NDArray[np.bool_]:
            return page_access.has_in_set(page, "isr", broker) | page_access.has_in_set(page, "elr", broker)

        return self.select(is_in)

    def rows_led_by(self, broker: int) -> Rows:
        """int64[n], ascending: rows that the broker leads."""
        return self.select(lambda page: page_access.has_leader(page, broker))

    def rows_without_leader(self) -> Rows:
        """int64[n], ascending: rows whose partition has no leader."""
        return self._select_counted(OFFLINE, page_access.is_leaderless)

    def rows_not_led_by_preferred(self) -> Rows:
        """int64[n], ascending: rows whose leader is not the first replica, or that have no leader."""
        return self.select(page_access.is_not_led_by_preferred)

    def rows_reassigning(self) -> Rows:
        """int64[n], ascending: rows with an open reassignment."""
        return self._select_counted(REASSIGNING, page_access.is_reassigning)

    def _select_counted(self, flag: int, predicate: PagePredicate) -> Rows:
        """As ``select``; no page is looked at where kept counts have no partition with the flag, as they mostly do."""
        counts = self.counts
        has_none = counts.are_kept and not counts.tally(self.pages, self.own_min_isrs).shapes.are(flag).any()
        return np.empty(0, np.int64) if has_none else self.select(predicate)

    @property
    def nbytes(self) -> int:
        """Bytes of all column arrays, each shared one counted once."""
        arrays = {id(column): column.nbytes for page in self.pages for column in (getattr(page, n) for n in COLUMNS)}
        return sum(arrays.values())


def uncounted_table(table: PartitionTable) -> PartitionTable:
    """The same partitions, and no counts are kept of them, or of any table that is made of this one."""
    return PartitionTable(
        table.pages,
        table.extents,
        table.directories,
        table.row_end,
        table.reserved_rows,
        table.partition_count,
        table.own_min_isrs,
        NOT_KEPT,
    )
