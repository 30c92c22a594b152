"""The counts of a table, kept as it changes: rows that were touched are counted as they were and as they are.

Touched rows gather until there are many of them, or somebody asks: counting a few rows costs nearly as much as counting
many. What they were is in the pages of the table that was counted last, which are kept for as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.counts.counting import COUNTED_COLUMNS, CountedRows, counted, difference
from quorate.snapshots.counts.tally import TableTally
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table import page_access
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import (
    LIST_COLUMNS,
    PAGE_ROWS,
    PAGE_SHIFT,
    AnyColumn,
    Page,
    Rows,
    Span,
    gathered_type,
    spans,
)

if TYPE_CHECKING:
    from quorate.snapshots.table.partition_table import PartitionTable

#: Touched rows that wait to be counted: two or three milliseconds for whoever asks. Those that lie apart are read one
#: by one, which takes a hundred times as long.
_WAITING_MAX: Final = 16_384
_APART_MAX: Final = 512
#: Changes of one row or of many that wait: each costs something for every one that waits.
_CHANGES_MAX: Final = 512
#: Rows counted at a time: their columns stay in a processor's cache.
_ROWS_AT_ONCE: Final = 32_768
#: So many rows of a page, on average, are read quicker as columns than one by one.
_ROWS_OF_A_PAGE: Final = 8
_LOCAL_MASK: Final = PAGE_ROWS - 1

#: ``own_min_isr_code`` of the topics that have one, by id.
OwnMinIsrs = PersistentMap[Uuid, int]


class _Settled(NamedTuple):
    """A tally, what it was counted in, and the rows that were touched since."""

    tally: TableTally
    pages: Sequence[Page]
    own: OwnMinIsrs
    #: Many at a time, each ascending, and one by one.
    touched: tuple[Rows, ...] = ()
    touched_ones: tuple[int, ...] = ()
    #: Their number, and of those the ones that lie apart.
    waiting: int = 0
    apart: int = 0


class KeptCounts:
    """The counts of one table. A value, but for what it remembers once it was asked: any thread may ask."""

    __slots__ = ("_base",)

    def __init__(self, base: _Settled | None) -> None:
        """``base``: None: they are not kept, for a table of which nobody asks them; who does waits for all of it."""
        self._base = base

    @staticmethod
    def of(tally: TableTally, pages: Sequence[Page], own: OwnMinIsrs) -> KeptCounts:
        """Those of a table that has this tally."""
        return KeptCounts(_Settled(tally, pages, own))

    @property
    def are_kept(self) -> bool:
        """Whether asking for them costs next to nothing."""
        return self._base is not None

    def moved_on(
        self, touched: Sequence[Rows], touched_ones: Sequence[int], pages: Sequence[Page], own: OwnMinIsrs
    ) -> KeptCounts:
        """The counts of the next table, in which no rows but these may be other than they were.

        ``touched``: ascending rows; ``touched_ones``: in any order.
        """
        base = self._base
        if base is None or not (touched or touched_ones):
            return self
        waiting = base.waiting + len(touched_ones) + sum(map(len, touched))
        apart = base.apart + len(touched_ones) + sum(len(rows) for rows in touched if _lie_apart(rows))
        both = (*base.touched, *touched), (*base.touched_ones, *touched_ones)
        successor = KeptCounts(_Settled(base.tally, base.pages, base.own, *both, waiting, apart))
        if waiting > _WAITING_MAX or apart > _APART_MAX or sum(map(len, both)) > _CHANGES_MAX:
            successor.tally(pages, own)
        return successor

    def moved(self, pages: Sequence[Page], own: OwnMinIsrs, new_pages: Sequence[Page]) -> KeptCounts:
        """The counts of a table with the same rows elsewhere; those of this one are in ``pages``."""
        return self if self._base is None else KeptCounts.of(self.tally(pages, own), new_pages, own)

    def tally(self, pages: Sequence[Page], own: OwnMinIsrs) -> TableTally:
        """The tally of the table which has these counts, these pages and these topics with a min ISR of their own."""
        base = self._base
        if base is None:
            return counted_anew(pages, own)
        if base.waiting:
            tally = TableTally.total((part, 1) for part in (base.tally, *_changes(base, pages, own)))
            self._base = base = _Settled(tally, pages, own)
        return base.tally


def _lie_apart(rows: Rows) -> bool:
    """Whether ascending rows are too few, for the pages that they reach over, to be read as columns."""
    return ((int(rows[-1]) >> PAGE_SHIFT) - (int(rows[0]) >> PAGE_SHIFT) + 1) * _ROWS_OF_A_PAGE > len(rows)


def _changes(base: _Settled, pages: Sequence[Page], own: OwnMinIsrs) -> Iterator[TableTally]:
    touched = _ascending((*base.touched, np.unique(np.array(base.touched_ones, np.int64))))
    old_end = int(np.searchsorted(touched, len(base.pages) << PAGE_SHIFT))
    for first, end in _stretches(0, old_end):
        part = _CutRows.of(touched[first:end])
        before = part.counted(base.pages, base.own)
        yield difference(
            before, CountedRows(part.other_columns(pages, base.pages, before.columns), part.own(pages, own))
        )
    for first, end in _stretches(old_end, len(touched)):
        yield counted(_CutRows.of(touched[first:end]).counted(pages, own))


def _stretches(first: int, end: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _ROWS_AT_ONCE, end)) for start in range(first, end, _ROWS_AT_ONCE))


def tally_of(table: PartitionTable) -> TableTally:
    """All partitions and replicas of a table by what they are: kept as they change, so it costs next to nothing."""
    return table.counts.tally(table.pages, table.own_min_isrs)


def counted_rows(table: PartitionTable, parts: Iterable[Rows]) -> TableTally:
    """The tally of some rows, counted: parts, each ascending, no row in two of them."""
    pages, own, cut = table.pages, table.own_min_isrs, map(_CutRows.of, parts)
    return TableTally.total((counted(part.counted(pages, own)), 1) for part in cut)


def own_min_isrs_of(page: Page, own: OwnMinIsrs) -> NDArray[np.uint8]:
    """uint8[PAGE_ROWS]: ``own_min_isr_code`` of each row's topic."""
    stretches = TopicStretches.of(page.topic_ids)
    codes = np.array([code or 0 for code in own.get_many(stretches.topics)], np.uint8)
    return np.repeat(codes, stretches.lengths)


def counted_anew(pages: Sequence[Page], own: OwnMinIsrs) -> TableTally:
    """The tally of all rows of some pages."""
    parts = (_CutRows.of(np.arange(first, end)) for first, end in _stretches(0, len(pages) << PAGE_SHIFT))
    return TableTally.total((counted(part.counted(pages, own)), 1) for part in parts)


def _ascending(touched: Sequence[Rows]) -> Rows:
    """All of them, each once."""
    rows = np.concatenate(touched)
    if (rows[1:] > rows[:-1]).all():
        return rows
    # What ascends already is merged; numpy's ``unique`` would hash every one of the rows of a whole table.
    rows.sort(kind="stable")
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = rows[1:] != rows[:-1]
    return rows[is_first]


class _CutRows(NamedTuple):
    """Ascending rows, and how they are cut into pages."""

    rows: Rows
    spans: list[Span]

    @staticmethod
    def of(rows: Rows) -> _CutRows:
        return _CutRows(rows, list(spans(rows)))

    @property
    def is_scattered(self) -> bool:
        return len(self.spans) * _ROWS_OF_A_PAGE > len(self.rows)

    def own(self, pages: Sequence[Page], own: OwnMinIsrs) -> NDArray[np.uint8] | None:
        """uint8[n]: ``own_min_isr_code`` of each row's topic; None: no topic has one."""
        if not own:
            return None
        gathered = page_access.gather_spans(pages, self.spans, len(self.rows), ("topic_ids",))
        stretches = TopicStretches.of(gathered["topic_ids"])
        codes = np.array([code or 0 for code in own.get_many(stretches.topics)], np.uint8)
        return np.repeat(codes, stretches.lengths)

    def counted(self, pages: Sequence[Page], own: OwnMinIsrs) -> CountedRows:
        """These rows by what they are counted by, in these pages."""
        return CountedRows(self.columns(pages), self.own(pages, own))

    def columns(self, pages: Sequence[Page], names: Sequence[str] = COUNTED_COLUMNS) -> dict[str, AnyColumn]:
        """The columns that are counted, as ``page_access.gather``."""
        if self.is_scattered:
            return _scattered(pages, self.rows)
        return page_access.gather_spans(pages, self.spans, len(self.rows), names)

    def other_columns(
        self, pages: Sequence[Page], known_pages: Sequence[Page], known: Mapping[str, AnyColumn]
    ) -> dict[str, AnyColumn]:
        """The same, where those of other pages are known: what these share is not read again."""
        if self.is_scattered:
            return _scattered(pages, self.rows)
        pairs = [(pages[number], known_pages[number]) for number, _, _ in self.spans]
        shared = {
            name: known[name]
            for name in COUNTED_COLUMNS
            if all(getattr(page, name) is getattr(before, name) for page, before in pairs)
        }
        return shared | self.columns(pages, [name for name in COUNTED_COLUMNS if name not in shared])


def _scattered(pages: Sequence[Page], rows: Rows) -> dict[str, AnyColumn]:
    """The same row by row: all that it takes to read a column of a page is not done for each of them."""
    places = [(pages[row >> PAGE_SHIFT], row & _LOCAL_MASK) for row in rows.tolist()]
    width = max(page.width for page, _ in places)
    read = [_read(page, local, width) for page, local in places]
    return {
        name: np.array(values, gathered_type(name, width)).T
        for name, values in zip((*_LISTS, *_NUMBERS), zip(*read, strict=True), strict=True)
    }


def _read(page: Page, local: int, width: int) -> list[Any]:
    """One row of the columns in ``_LISTS`` and ``_NUMBERS``."""
    lists = [column[:, local].tolist() for column in _lists_of(page)]
    if page.width < width:
        lists = [
            values + [LIST_COLUMNS[name][1]] * (width - page.width) for name, values in zip(_LISTS, lists, strict=True)
        ]
    return [*lists, *[column.item(local) for column in _numbers_of(page)]]


_LISTS: Final = tuple(name for name in COUNTED_COLUMNS if name in LIST_COLUMNS)
_NUMBERS: Final = tuple(name for name in COUNTED_COLUMNS if name not in LIST_COLUMNS)
_lists_of: Final = attrgetter(*_LISTS)
_numbers_of: Final = attrgetter(*_NUMBERS)


#: Of a table without topics.
NO_OWN_MIN_ISRS: Final[OwnMinIsrs] = PersistentMap()
NOT_KEPT: Final = KeptCounts(None)
NO_COUNTS: Final = KeptCounts.of(TableTally(), (), NO_OWN_MIN_ISRS)
