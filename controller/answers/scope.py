"""The partitions that a question is about: what they are as counts, and those in some condition, a part at a time.

Of all partitions the counts are kept; of others they are made. Where a condition holds is looked for page by page, so
that nobody waits for the interpreter while millions of partitions are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.partition_conditions import Flags, MinIsrs, cells_in, is_in
from quorate.controller.reads.partition_filter import Condition
from quorate.snapshots.counts.cells import Cells
from quorate.snapshots.counts.tally import IN_SYNC, Shapes, TableTally
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import counted_rows, tally_of
from quorate.snapshots.table.page_access import has_replica, holds_partition
from quorate.snapshots.table.pages import PAGE_SHIFT, Page, Rows, spans

#: Rows that are worked on at a time, or some more: some pages full, or those of many pages that have few.
_ROWS_AT_ONCE: Final = 16_384


class Scope:
    """Partitions of one image."""

    def __init__(
        self,
        image: MetadataImage,
        numbers: Iterable[int],
        flags: Callable[[int, Page], Flags],
        tally: TableTally | None,
    ) -> None:
        """``numbers``: of the pages that hold any, and ``flags``: which of a page's rows. ``tally``: None: counted."""
        self.image = image
        self._numbers = numbers
        self._flags = flags
        #: The counts of these partitions. Replicas that are in sync may be left out.
        self.tally = counted_rows(image.partitions, self._parts(flags)) if tally is None else tally

    @staticmethod
    def of_all(image: MetadataImage) -> Scope:
        """All partitions."""
        table = image.partitions
        return Scope(image, range(len(table.pages)), lambda _, page: holds_partition(page), tally_of(table))

    @staticmethod
    def of_broker(image: MetadataImage, broker_id: int) -> Scope:
        """Those with a replica on a broker."""
        numbers = range(len(image.partitions.pages))
        tally = _tally_of_broker(tally_of(image.partitions), broker_id)
        return Scope(image, numbers, lambda _, page: has_replica(page, broker_id), tally)

    @staticmethod
    def of_rows(image: MetadataImage, rows: Rows) -> Scope:
        """Those in some rows, ascending."""
        local = {number: within for number, within, _ in spans(rows)}

        def flags(number: int, page: Page) -> Flags:
            found = np.zeros(len(page.partition_ids), np.bool_)
            found[local[number]] = True
            return found

        return Scope(image, local, flags, None)

    def __len__(self) -> int:
        return int(self.tally.partitions.counts.sum())

    def in_condition(self, config: ControllerConfig, condition: Condition, shapes: Shapes) -> Flags:
        """bool[c]: whether cells with these shapes are of partitions in a condition."""
        return cells_in(shapes, condition, MinIsrs(self.image, config))

    def parts(self, config: ControllerConfig, condition: Condition) -> Iterator[Rows]:
        """Yield the rows of those in a condition: parts int64[k], ascending."""
        min_isrs = MinIsrs(self.image, config)
        return self._parts(lambda number, page: self._flags(number, page) & is_in(page, condition, min_isrs))

    def _parts(self, flags: Callable[[int, Page], Flags]) -> Iterator[Rows]:
        gathered: list[Rows] = []
        count = 0
        for number in self._numbers:
            rows = np.flatnonzero(flags(number, self.image.partitions.pages[number])) + (number << PAGE_SHIFT)
            if len(rows):
                gathered.append(rows)
                count += len(rows)
            if count >= _ROWS_AT_ONCE:
                yield np.concatenate(gathered)
                gathered, count = [], 0
        if gathered:
            yield np.concatenate(gathered)


def _tally_of_broker(table: TableTally, broker_id: int) -> TableTally | None:
    """The counts of the partitions with a replica on a broker, out of those of a whole table.

    Of millions of partitions, as those of a broker that was lost, they take a second to be counted. None: the table's
    do not tell, for replicas of other brokers are not in sync, which may or may not be in these partitions.
    """
    brokers, _, parts, shapes = table.replicas.keys
    is_its = brokers == broker_id
    if not (is_its | (parts & IN_SYNC != 0)).all():
        return None
    counts = table.replicas.counts[is_its]
    # A partition has one replica on a broker at most.
    partitions = Cells.merged([shapes[is_its]], counts)
    return TableTally(partitions, Cells(tuple(key[is_its] for key in table.replicas.keys), counts))
