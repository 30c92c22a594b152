"""Rows of several pages side by side, as the rows of one page: what takes columns is called once for all of them.

Of a mass change a page has some hundreds of rows that are looked at, a few microseconds of work for each step, which is
what calling numpy takes besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.places import Ints, is_among
from quorate.snapshots.table.page_access import gather_spans
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page, Rows, Span

#: Pages that are looked at as one: beyond it calls cost next to nothing any more, and the loop has others to serve.
PAGES_JOINED_MAX: Final = 16
#: What may be other of a page in which nothing but leaders, ISRs and what follows from them is.
LEADER_COLUMNS: Final = ("leader_slots", "leader_epochs", "isr", "partition_epochs")


class JoinedPages(NamedTuple):
    """Some rows of some pages. A *joined page* has the columns of these rows only, the first one in row 0."""

    #: Of the pages, ascending.
    numbers: list[int]
    #: int64[n], ascending: rows of the table.
    rows: Rows
    #: Where the rows of each page begin, and their end.
    bounds: list[int]

    @staticmethod
    def of(by_page: Mapping[int, Ints]) -> JoinedPages:
        """Ascending rows within pages, by the pages' numbers, which ascend."""
        numbers = list(by_page)
        return JoinedPages(numbers, table_rows(by_page), _bounds(map(len, by_page.values())))

    @staticmethod
    def of_rows(numbers: Iterable[int], *rows: Rows) -> JoinedPages:
        """Rows of a table, in parts that each ascend, all in these pages. A row may be in several parts."""
        together = np.concatenate(rows)
        together.sort(kind="stable")  # which merges what ascends; numpy's ``unique`` would hash every row
        is_first = np.ones(len(together), np.bool_)
        is_first[1:] = together[1:] != together[:-1]
        together, numbers = together[is_first], list(numbers)
        starts = np.array(numbers, np.int64) << PAGE_SHIFT
        return JoinedPages(numbers, together, [*np.searchsorted(together, starts).tolist(), len(together)])

    def page(self, pages: Sequence[Page], names: Iterable[str]) -> Page:
        """The joined page with these columns out of the pages of a table; in the others it holds nothing."""
        local = self.rows & (PAGE_ROWS - 1)
        parts = (slice(*ends) for ends in zip(self.bounds, self.bounds[1:], strict=False))
        spans: list[Span] = [(number, local[part], part) for number, part in zip(self.numbers, parts, strict=True)]
        columns = gather_spans(pages, spans, len(self.rows), names)
        page = Page.blank(len(columns["slots"]) if "slots" in columns else 1)
        for name, column in columns.items():
            setattr(page, name, column)
        return page

    def parts(self, rows: Ints) -> Iterator[tuple[int, Ints, slice]]:
        """For each page its number, its rows among ``rows`` of the joined page, and where these stand among ``rows``.

        The rows of a page are int64[m], ascending, and within it.
        """
        bounds = np.searchsorted(rows, self.bounds).tolist()
        for number, first, end in zip(self.numbers, bounds, bounds[1:], strict=False):
            yield number, self.rows[rows[first:end]] & (PAGE_ROWS - 1), slice(first, end)


def table_rows(by_page: Mapping[int, Ints]) -> Rows:
    """int64[n]: rows within pages as rows of the table, in the same order."""
    starts = np.repeat(np.array(list(by_page), np.int64) << PAGE_SHIFT, [len(rows) for rows in by_page.values()])
    return np.concatenate([*by_page.values(), np.empty(0, np.int64)]) + starts


def rows_of_brokers(by_page: Mapping[int, Ints], pages: Sequence[Page], brokers: NDArray[np.int32]) -> Rows:
    """int64[n], ascending: those of the rows, by page, in which one of these brokers (ascending) has a slot."""
    joined = JoinedPages.of(by_page)
    slots = joined.page(pages, ("slots",)).slots
    return joined.rows[np.logical_or.reduce(is_among(slots, brokers), axis=0)]


def with_leaders_of(before: Page, page: Page) -> Page:
    """A joined page as it was ``before``, which has ``LEADER_COLUMNS`` only: the others are those of ``page``, as it
    is now, the same objects.
    """
    whole = page.copy()
    for name in LEADER_COLUMNS:
        setattr(whole, name, getattr(before, name))
    return whole


def joined(columns: Sequence[NDArray[Any]], nothing: Any) -> NDArray[Any]:
    """[width, n]: columns of lists or flags by slot side by side, as wide as the widest; the others are filled up."""
    widths = {len(column) for column in columns}
    if len(widths) == 1:
        return np.concatenate(columns, axis=1)
    both = np.full((max(widths), sum(column.shape[1] for column in columns)), nothing, columns[0].dtype)
    for column, end in zip(columns, np.cumsum([column.shape[1] for column in columns]).tolist(), strict=True):
        both[: len(column), end - column.shape[1] : end] = column
    return both


def _bounds(sizes: Iterable[int]) -> list[int]:
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return bounds
