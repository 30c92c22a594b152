"""Pages of the partition table: 4096 rows each, one numpy array a column.

A row is one partition. Its brokers stand in *slots*: the replicas in order, then any other broker that one of its
sets (or its leader) mentions, by id. Sets are bit masks over the slots. A page is as wide as its widest row.
Columns of lists are stored slot by slot, ``[width, PAGE_ROWS]``, so that one slot of all rows is contiguous.

Once a page is published its arrays are never written to (they are flagged read-only). Pages share arrays: with
their predecessors where nothing changed, and with all blank pages where a column holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import compress
from operator import is_not
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import UUID_BYTES

PAGE_SHIFT: Final = 12
PAGE_ROWS: Final = 1 << PAGE_SHIFT
_LOCAL_MASK: Final = PAGE_ROWS - 1

#: Broker in a slot that a row does not use. No broker has this id, not even the -1 of a last-known ELR.
NO_BROKER: Final = -(2**31)
#: Padding of the ISR's order.
NO_SLOT: Final = 255
#: Directory code of a slot that is no replica.
NO_DIRECTORY: Final = -1
#: Partition id of a row that holds no partition.
NO_PARTITION: Final = -1
#: Slot of the leader where there is none.
NO_LEADER_SLOT: Final = -1

AnyColumn = NDArray[Any]
#: int64[n], positions in a table. They mean something in one version of it only.
Rows = NDArray[np.int64]

#: Columns of lists, ``[width, PAGE_ROWS]``: their type and what fills an unused place.
LIST_COLUMNS: Final[dict[str, tuple[np.dtype[Any], int]]] = {
    "slots": (np.dtype(np.int32), NO_BROKER),
    "directories": (np.dtype(np.int32), NO_DIRECTORY),
    "isr_order": (np.dtype(np.uint8), NO_SLOT),
}
#: Sets of slots, ``[PAGE_ROWS]``; the type is the smallest unsigned integer with a bit for every slot.
MASK_COLUMNS: Final = ("isr", "elr", "last_known_elr", "adding", "removing")
#: Epochs, ``[PAGE_ROWS]``; the type is the smallest that holds a page's greatest, as nearly all stay low: a mass change
#: makes two columns of them anew in every page. Gathered rows always have ``EPOCH_TYPE``.
EPOCH_COLUMNS: Final = ("leader_epochs", "partition_epochs")
EPOCH_TYPE: Final = np.dtype(np.int32)
#: Numbers, ``[PAGE_ROWS]``: their type, of epochs the smallest, and their value in an empty row.
NUMBER_COLUMNS: Final[dict[str, tuple[np.dtype[Any], int]]] = {
    "partition_ids": (np.dtype(np.int32), NO_PARTITION),
    "replica_counts": (np.dtype(np.uint8), 0),
    "leader_slots": (np.dtype(np.int8), NO_LEADER_SLOT),
    "leader_epochs": (np.dtype(np.uint8), 0),
    "partition_epochs": (np.dtype(np.uint8), 0),
    "recovery_states": (np.dtype(np.int8), 0),
}
COLUMNS: Final = ("topic_ids", *LIST_COLUMNS, *MASK_COLUMNS, *NUMBER_COLUMNS)


class Page:
    """The columns of ``PAGE_ROWS`` rows. Only an editor that made a copy writes to them."""

    __slots__ = COLUMNS

    #: uint8[PAGE_ROWS, 16]
    topic_ids: NDArray[np.uint8]
    #: Broker ids.
    slots: NDArray[np.int32]
    #: Codes of the table's directory dictionary.
    directories: NDArray[np.int32]
    #: The ISR as slots, in its order.
    isr_order: NDArray[np.uint8]
    isr: AnyColumn
    elr: AnyColumn
    last_known_elr: AnyColumn
    adding: AnyColumn
    removing: AnyColumn
    partition_ids: NDArray[np.int32]
    #: The first slots, as many as this, are the replicas.
    replica_counts: NDArray[np.uint8]
    leader_slots: NDArray[np.int8]
    leader_epochs: AnyColumn
    partition_epochs: AnyColumn
    #: 0 = recovered, 1 = recovering.
    recovery_states: NDArray[np.int8]

    @property
    def width(self) -> int:
        """Slots that a row of this page can have."""
        return len(self.slots)

    @property
    def is_blank(self) -> bool:
        """Whether it never held a partition: numbers far beyond a topic's others leave thousands of such pages."""
        return self.partition_ids is blank_column("partition_ids", 1)

    def copy(self) -> Page:
        """A page with the same arrays."""
        page = Page.__new__(Page)
        # Written out: it is done for every single change.
        page.topic_ids = self.topic_ids
        page.slots = self.slots
        page.directories = self.directories
        page.isr_order = self.isr_order
        page.isr = self.isr
        page.elr = self.elr
        page.last_known_elr = self.last_known_elr
        page.adding = self.adding
        page.removing = self.removing
        page.partition_ids = self.partition_ids
        page.replica_counts = self.replica_counts
        page.leader_slots = self.leader_slots
        page.leader_epochs = self.leader_epochs
        page.partition_epochs = self.partition_epochs
        page.recovery_states = self.recovery_states
        return page

    def widened(self, width: int) -> Page:
        """The same rows with room for more slots."""
        page = self.copy()
        for name in LIST_COLUMNS:
            wide = blank_column(name, width).copy()
            wide[: self.width] = getattr(self, name)
            setattr(page, name, wide)
        for name in MASK_COLUMNS:
            column = getattr(self, name)
            is_blank = column is blank_column(name, self.width)
            setattr(page, name, blank_column(name, width) if is_blank else column.astype(mask_type(width)))
        return page

    @staticmethod
    def blank(width: int) -> Page:
        """A page without partitions."""
        page = Page.__new__(Page)
        for name in COLUMNS:
            setattr(page, name, blank_column(name, width))
        return page


#: bool[PAGE_ROWS] of a page: rows of it that are looked for.
PagePredicate = Callable[[Page], NDArray[np.bool_]]

_MASK_TYPES: Final[tuple[np.dtype[Any], ...]] = tuple(
    np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
)

_UINT8, _UINT16 = np.dtype(np.uint8), np.dtype(np.uint16)
_UINT8_MAX, _UINT16_MAX = (1 << 8) - 1, (1 << 16) - 1


def mask_type(width: int) -> np.dtype[Any]:
    """The type of a set over ``width`` slots."""
    return _MASK_TYPES[(width > 8) + (width > 16) + (width > 32)]


def epoch_type(lowest: int, highest: int) -> np.dtype[Any]:
    """The smallest type of an epoch column that holds all from the one to the other."""
    if lowest < 0 or highest > _UINT16_MAX:
        return EPOCH_TYPE
    return _UINT16 if highest > _UINT8_MAX else _UINT8


@cache
def blank_column(name: str, width: int) -> AnyColumn:
    """The read-only column [PAGE_ROWS] that all pages of a width share in which it holds nothing."""
    if name in LIST_COLUMNS:
        kind, fill = LIST_COLUMNS[name]
        return _blank_list(kind, fill, width)
    if name in MASK_COLUMNS:
        return _blank_numbers(mask_type(width), 0)
    return _BLANK_TOPIC_IDS if name == "topic_ids" else _blank_numbers(*NUMBER_COLUMNS[name])


@cache
def _blank_list(kind: np.dtype[Any], fill: int, width: int) -> AnyColumn:
    return _read_only(np.full((width, PAGE_ROWS), fill, kind))


@cache
def _blank_numbers(kind: np.dtype[Any], fill: int) -> AnyColumn:
    return _read_only(np.full(PAGE_ROWS, fill, kind))


def gathered_type(name: str, width: int) -> np.dtype[Any]:
    """The type of a column of rows out of pages that are so wide at most."""
    return EPOCH_TYPE if name in EPOCH_COLUMNS else blank_column(name, width).dtype


def _read_only(column: AnyColumn) -> AnyColumn:
    column.setflags(write=False)
    return column


_BLANK_TOPIC_IDS: Final = _read_only(np.zeros((PAGE_ROWS, UUID_BYTES), np.uint8))


def other_pages(old: Sequence[Page], new: Sequence[Page]) -> list[int]:
    """Numbers, ascending, of the pages of a table that are not the same objects in an older one of its tables.

    Of a large table a change leaves nearly all pages: they are passed over at some 20 ns each.
    """
    shared = min(len(old), len(new))
    return [*compress(range(shared), map(is_not, old, new)), *range(shared, len(new))]


#: A page's number, the rows in it (within the page), and where those rows stand among the rows asked for.
Span = tuple[int, "slice | NDArray[np.int64]", slice]


def spans(rows: Rows) -> Iterator[Span]:
    """Cut strictly ascending rows, int64[n], into pages; a stretch without gaps comes as a slice."""
    count = len(rows)
    if count == 0:
        return
    numbers, local = rows >> PAGE_SHIFT, rows & _LOCAL_MASK
    starts = [0]
    if numbers[0] != numbers[-1]:
        starts += (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    lasts = local.take([*(start - 1 for start in starts[1:]), count - 1]).tolist()
    ends = [*starts[1:], count]
    of_starts = zip(numbers.take(starts).tolist(), local.take(starts).tolist(), strict=True)
    for (number, first), last, start, end in zip(of_starts, lasts, starts, ends, strict=True):
        yield number, slice(first, last + 1) if last - first == end - 1 - start else local[start:end], slice(start, end)


def ascending_rows(rows: Rows) -> tuple[Rows, Rows]:
    """int64[k], int64[n]: the rows in strictly ascending order, and where in it each of those given stands."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    positions = np.empty(len(rows), np.int64)
    positions[order] = np.cumsum(is_first) - 1
    return ordered[is_first], positions
