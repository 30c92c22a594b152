"""Making the next partition table: topics' rows are reserved, moved and freed, partitions put, changed and removed.

An editor works on copies of what it touches; ``finish`` gives the new table. If an operation raises, the editor is to
be thrown away, and nothing has changed. Runs of records are applied by ``snapshots.table.table_runs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import NO_LEADER, Uuid, uuid_text
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.maps.persistent_map import MapEditor, PersistentMap
from quorate.snapshots.table.extents import NO_ROWS, Extent, TopicStretches, extent_column, numbered, reserved_rows
from quorate.snapshots.table.kept_counts import OwnMinIsrs
from quorate.snapshots.table.page_access import gather_in_any_order, holds_partition, read_partition, search
from quorate.snapshots.table.page_editor import PageEditor
from quorate.snapshots.table.pages import NO_LEADER_SLOT, NO_PARTITION, PAGE_ROWS, Rows
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.row_changes import columns_in_place

#: Partitions of one topic. Rows are reserved up to the highest number, some 64 bytes each: a record with a number gone
#: wild must not take gigabytes.
PARTITIONS_PER_TOPIC_MAX: Final = 1 << 22
#: Topics whose rows are moved at once: to move one alone takes as long as a hundred rows.
_TOPICS_MOVED_TOGETHER: Final = 256
#: Slots that a new page has room for, unless its rows need more.
NEW_PAGE_WIDTH: Final = 3

#: Set and number columns, and the fields of ``Partition`` behind them.
_SETS: Final = (
    ("elr", "elr"),
    ("last_known_elr", "last_known_elr"),
    ("adding", "adding_replicas"),
    ("removing", "removing_replicas"),
)
_NUMBERS: Final = (
    ("leader_epochs", "leader_epoch"),
    ("partition_epochs", "partition_epoch"),
    ("recovery_states", "leader_recovery_state"),
)


class TableEditor:
    """One table being changed."""

    def __init__(self, table: PartitionTable) -> None:
        self._table = table
        self.pages = PageEditor(table.pages)
        self.directories = table.directories
        self._extents: MapEditor[Uuid, Extent] = MapEditor(table.extents)
        self._row_end = table.row_end
        self._reserved_rows = table.reserved_rows
        self.partition_count = table.partition_count
        self._own_min_isrs = table.own_min_isrs
        self._new_min_isrs: dict[Uuid, int] = {}

    def finish(self) -> PartitionTable:
        """The table with all changes; the same object if there are none."""
        own, touched = self._finished_min_isrs(), (self.pages.touched, self.pages.touched_ones)
        free_rows = self._row_end - self._reserved_rows
        if free_rows > self._reserved_rows + PAGE_ROWS:  # so moving rows costs a constant share of freeing them
            edited = self.pages.pages
            counts = self._table.counts.moved_on(*touched, edited, own)
            self._compact()
            pages = self.pages.finish()
            counts = counts.moved(edited, own, pages)
        else:
            pages = self.pages.finish()
            counts = self._table.counts.moved_on(*touched, pages, own)
        extents = self._extents.finish()
        if pages is self._table.pages and extents is self._table.extents and own is self._table.own_min_isrs:
            return self._table
        return PartitionTable(
            pages,
            extents,
            self.directories,
            self._row_end,
            self._reserved_rows,
            self.partition_count,
            own,
            counts,
        )

    def _finished_min_isrs(self) -> OwnMinIsrs:
        changed = self._new_min_isrs
        if not changed:
            return self._own_min_isrs
        removed = [topic_id for topic_id, code in changed.items() if not code]
        return self._own_min_isrs.changed({topic_id: code for topic_id, code in changed.items() if code}, removed)

    # --- topics --------------------------------------------------------------------------------------

    def extent(self, topic_id: Uuid) -> Extent | None:
        """A topic's rows as they are now."""
        return self._extents.get(topic_id)

    def find_extents(self, stretches: TopicStretches) -> NDArray[np.int64]:
        """int64[s, 2]: first row and size of each stretch's topic as they are now; zeros where it has none."""
        return extent_column(self._extents.get_many(stretches.topics))

    def find_rows(self, topic_ids: NDArray[np.uint8], partition_ids: NDArray[np.int32]) -> Rows:
        """int64[n]: rows reserved now for partitions (uint8[n, 16], int32[n]); -1 where none is."""
        return reserved_rows(self._extents, self.pages.pages, self.pages.gather, topic_ids, partition_ids)

    def reserve(self, sizes: Mapping[Uuid, int], width: int = NEW_PAGE_WIDTH) -> None:
        """Make sure that topics have rows for partitions 0 to their size (exclusive).

        Args:
            width: slots of the rows of pages that have to be made.

        Raises:
            ReplayError: more partitions than one topic may have.
        """
        moves: list[tuple[Extent, int]] = []
        reserved: dict[Uuid, Extent] = {}
        row_end = self._row_end
        topic_ids = list(sizes)
        for topic_id, present in zip(topic_ids, self._extents.get_many(topic_ids), strict=True):
            size = sizes[topic_id]
            extent = present or NO_ROWS
            if extent.size >= size:
                continue
            if size > PARTITIONS_PER_TOPIC_MAX:
                raise ReplayError(
                    f"partition {size - 1} of topic {uuid_text(topic_id)}: the last number is "
                    f"{PARTITIONS_PER_TOPIC_MAX - 1}"
                )
            first_row = extent.first_row
            if first_row + extent.size != row_end:  # else they are the last rows, and there is room behind them
                first_row = row_end
                if extent.size:
                    moves.append((extent, first_row))
            row_end = first_row + size
            self._reserved_rows += size - extent.size
            reserved[topic_id] = Extent(first_row, size)
        self._row_end = row_end
        self._extents.update(reserved)
        self.pages.grow_to(row_end, width)
        for first in range(0, len(moves), _TOPICS_MOVED_TOGETHER):
            self._move(moves[first : first + _TOPICS_MOVED_TOGETHER])

    def _move(self, moves: Sequence[tuple[Extent, int]]) -> None:
        """Move topics, of which each gets rows behind those of the one before, to their new first rows."""
        extents = np.array([extent for extent, _ in moves], np.int64)
        target = numbered(np.array([first_row for _, first_row in moves], np.int64), extents[:, 1])
        source = numbered(extents[:, 0], extents[:, 1])
        self.pages.write(target, gather_in_any_order(self.pages.pages, source))
        self.pages.clear(np.sort(source))

    def set_min_isr(self, topic_id: Uuid, code: int) -> None:
        """Count a topic's partitions by a min ISR of its own from here on; ``code``: ``own_min_isr_code``."""
        known = self._new_min_isrs.get(topic_id)
        if code != (self._own_min_isrs.get(topic_id, 0) if known is None else known):
            self._new_min_isrs[topic_id] = code
            self.pages.touch(self.rows_of(topic_id))

    def remove_topic(self, topic_id: Uuid) -> None:
        """Remove a topic's partitions; nothing happens if it has none."""
        self.set_min_isr(topic_id, 0)
        extent = self._extents.get(topic_id)
        if extent is None:
            return
        rows = self.rows_of(topic_id)
        numbers = self.pages.gather(rows, ("partition_ids",))["partition_ids"]
        self.partition_count -= int((numbers != NO_PARTITION).sum())
        self.pages.clear(rows)
        self._extents.remove(topic_id)
        self._reserved_rows -= extent.size

    def _compact(self) -> None:
        """Move all topics together, in the order in which they lie."""
        ordered = sorted(self._extents.items(), key=lambda item: item[1].first_row)
        old, self.pages = self.pages, PageEditor(())
        first_row = 0
        extents: dict[Uuid, Extent] = {}
        for topic_id, extent in ordered:
            extents[topic_id] = Extent(first_row, extent.size)
            first_row += extent.size
        self._row_end = first_row
        self.pages.grow_to(first_row, NEW_PAGE_WIDTH)
        if ordered:
            ranges = [np.arange(extent.first_row, extent.first_row + extent.size) for _, extent in ordered]
            source = np.concatenate(ranges)
            for start in range(0, first_row, PAGE_ROWS):
                part = source[start : start + PAGE_ROWS]
                self.pages.write(np.arange(start, start + len(part)), old.gather(part))
        self._extents = MapEditor(PersistentMap(extents))

    # --- one partition -------------------------------------------------------------------------------

    def put(self, record: PartitionRecord) -> None:
        """Declare a partition whole, new or not.

        Raises:
            ReplayError: as ``Partition.from_record`` and ``reserve``, or a negative number.
        """
        partition = Partition.from_record(record)
        check_partition_number(record.topic_id, record.partition_id)
        slots = partition.slots()
        self.reserve({record.topic_id: record.partition_id + 1}, len(slots))
        row = self._extents[record.topic_id].first_row + record.partition_id
        page, local = self.pages.page_of(row)
        self.partition_count += int(page.partition_ids[local]) == NO_PARTITION
        self.pages.widen(row // PAGE_ROWS, len(slots))
        columns = self._columns(partition, slots)
        columns["partition_ids"] = record.partition_id
        columns["topic_ids"] = np.frombuffer(record.topic_id, np.uint8)
        self.pages.put_row(row, columns)

    def change(self, record: PartitionChangeRecord) -> None:
        """Change one partition.

        Raises:
            ReplayError: no such partition, an epoch that cannot rise any more, or as ``Partition.changed_by``.
        """
        row = self._row(record.topic_id, record.partition_id)
        page, local = self.pages.page_of(row)
        columns = columns_in_place(page, local, record)
        if columns is None:
            after = read_partition(page, local, self.directories).changed_by(record)
            slots = after.slots()
            self.pages.widen(row // PAGE_ROWS, len(slots))
            columns = self._columns(after, slots)
        self.pages.put_row(row, columns)

    def _row(self, topic_id: Uuid, partition_id: int) -> int:
        extent = self._extents.get(topic_id)
        if extent is not None and 0 <= partition_id < extent.size:
            row = extent.first_row + partition_id
            page, local = self.pages.page_of(row)
            if page.partition_ids.item(local) != NO_PARTITION:
                return row
        raise unknown_partition(topic_id, partition_id)

    def _columns(self, partition: Partition, slots: tuple[int, ...]) -> dict[str, Any]:
        """All columns of a partition over these slots."""
        order = [slots.index(broker) for broker in partition.isr]
        columns: dict[str, Any] = {
            "slots": slots,
            "replica_counts": len(partition.replicas),
            "directories": self._codes(partition.directories),
            "isr_order": order,
            "isr": sum([1 << slot for slot in order]),
            "leader_slots": NO_LEADER_SLOT if partition.leader == NO_LEADER else slots.index(partition.leader),
        }
        for column, field in _SETS:
            members = getattr(partition, field)
            columns[column] = sum([1 << slots.index(broker) for broker in members]) if members else 0
        for column, field in _NUMBERS:
            columns[column] = getattr(partition, field)
        return columns

    def _codes(self, uuids: tuple[Uuid, ...]) -> list[int]:
        self.directories = self.directories.including(uuids)
        return [self.directories.known_code(uuid) for uuid in uuids]

    # --- used by runs --------------------------------------------------------------------------------

    def rows_of(self, topic_id: Uuid) -> Rows:
        """int64[n], ascending: rows reserved for a topic as they are now."""
        extent = self._extents.get(topic_id) or NO_ROWS
        return np.arange(extent.first_row, extent.first_row + extent.size)

    def all_rows(self) -> Rows:
        """int64[n], ascending: every row that holds a partition now."""
        return search(self.pages.pages, holds_partition)

    def require_held(self, rows: Rows, topic_ids: np.ndarray, partition_ids: np.ndarray) -> None:
        """Refuse rows (ascending) that hold no partition.

        Raises:
            ReplayError: names the first one.
        """
        is_absent = self.pages.gather(rows, ("partition_ids",))["partition_ids"] == NO_PARTITION
        if is_absent.any():
            at = int(np.argmax(is_absent))
            raise unknown_partition(topic_ids[at].tobytes(), int(partition_ids[at]))


def check_partition_number(topic_id: Uuid, partition_id: int) -> None:
    """Refuse a negative partition number.

    Raises:
        ReplayError: it is negative.
    """
    if partition_id < 0:
        raise ReplayError(f"partition {partition_id} of topic {uuid_text(topic_id)}: a number is not negative")


def unknown_partition(topic_id: Uuid, partition_id: int) -> ReplayError:
    """The error for a record about a partition that does not exist."""
    return ReplayError(f"there is no partition {partition_id} of topic {uuid_text(topic_id)}")
