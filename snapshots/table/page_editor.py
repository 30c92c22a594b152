"""Copy-on-write access to pages: every column of a page is copied at most once before it is written to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from quorate.snapshots.errors import ReplayError
from quorate.snapshots.table import page_access
from quorate.snapshots.table.pages import (
    COLUMNS,
    EPOCH_COLUMNS,
    LIST_COLUMNS,
    MASK_COLUMNS,
    NO_BROKER,
    NUMBER_COLUMNS,
    PAGE_ROWS,
    PAGE_SHIFT,
    AnyColumn,
    Page,
    Rows,
    Span,
    blank_column,
    epoch_type,
    spans,
)

_LOCAL_MASK = PAGE_ROWS - 1
#: What stands for nothing in a set or number column.
_NOTHING: Final = {**dict.fromkeys(MASK_COLUMNS, 0), **{name: empty for name, (_, empty) in NUMBER_COLUMNS.items()}}


class PageEditor:
    """Pages being changed. What it was given is never written to; ``finish`` publishes and ends it."""

    def __init__(self, pages: tuple[Page, ...]) -> None:
        self._published = pages
        self.pages: list[Page] = list(pages)
        #: Page number -> columns that are copies of ours.
        self._owned: dict[int, set[str]] = {}
        #: Rows that were written to: many at a time, each ascending, and one by one. A row may be among several.
        self.touched: list[Rows] = []
        self.touched_ones: list[int] = []
        # The rows last worked on and their spans: one operation reads and writes the same rows several times.
        self._last_rows: Rows | None = None
        self._last_spans: list[Span] = []

    def finish(self) -> tuple[Page, ...]:
        """The pages with all changes, read-only from here on; the same tuple if there are none."""
        if not self._owned and len(self.pages) == len(self._published):
            return self._published
        for number, names in self._owned.items():
            page = self.pages[number]
            for name in names:
                getattr(page, name).setflags(write=False)
        self._owned = {}
        return tuple(self.pages)

    def touch(self, rows: Rows) -> None:
        """Call ascending rows written to."""
        if len(rows) and (not self.touched or rows is not self.touched[-1]):
            self.touched.append(rows)

    def grow_to(self, row_end: int, width: int) -> None:
        """Have pages for all rows below ``row_end``; new ones are blank and have ``width`` slots, but at least one."""
        while len(self.pages) << PAGE_SHIFT < row_end:
            self.pages.append(Page.blank(max(width, 1)))

    def column(self, number: int, name: str) -> AnyColumn:
        """One page's column, to be written to: [PAGE_ROWS], of lists [width, PAGE_ROWS]."""
        owned = self._own(number)
        page = self.pages[number]
        if name not in owned:
            setattr(page, name, getattr(page, name).copy())
            owned.add(name)
        column: AnyColumn = getattr(page, name)
        return column

    def _epochs(self, number: int, name: str, lowest: int, highest: int) -> AnyColumn:
        """``column``, for epochs from the one to the other."""
        column, kind = self.column(number, name), epoch_type(lowest, highest)
        if kind.itemsize > column.dtype.itemsize:
            column = column.astype(kind)
            setattr(self.pages[number], name, column)
        return column

    def _own(self, number: int) -> set[str]:
        owned = self._owned.get(number)
        if owned is None:
            owned = self._owned[number] = set()
            self.pages[number] = self.pages[number].copy()
        return owned

    def widen(self, number: int, width: int) -> None:
        """Make sure that the rows of a page can have ``width`` slots."""
        page = self.pages[number]
        if page.width >= width:
            return
        owned = self._own(number)
        self.pages[number] = page.widened(width)
        owned.update(LIST_COLUMNS)

    # --- one row -------------------------------------------------------------------------------------

    def page_of(self, row: int) -> tuple[Page, int]:
        """The page of a row as it is now, and the row in it."""
        return self.pages[row >> PAGE_SHIFT], row & _LOCAL_MASK

    def put_row(self, row: int, values: Mapping[str, Any]) -> None:
        """Set some columns of one row; lists may be shorter than the page is wide, not longer.

        Raises:
            ReplayError: a number is beyond 32 bits, as an epoch above one that a log says to be the highest.
        """
        self.touched_ones.append(row)
        number, local = row >> PAGE_SHIFT, row & _LOCAL_MASK
        owned = self._own(number)
        page = self.pages[number]
        width = len(page.slots)
        for name, value in values.items():
            column = getattr(page, name)
            if name not in owned:
                # A whole column is copied for one row: not where it holds nothing, and is to hold nothing here either.
                if name in _NOTHING and value == _NOTHING[name] and column is blank_column(name, width):
                    continue
                column = column.copy()
                setattr(page, name, column)
                owned.add(name)
            if name in LIST_COLUMNS:
                for place, item in enumerate(value):  # a few places: quicker than all of them as an array
                    column[place, local] = item
                if len(value) < width:
                    column[len(value) :, local] = LIST_COLUMNS[name][1]
            else:
                if name in EPOCH_COLUMNS:
                    column = self._epochs(number, name, value, value)
                try:
                    column[local] = value
                except OverflowError as error:
                    raise _beyond(name) from error

    # --- many rows -----------------------------------------------------------------------------------

    def gather(self, rows: Rows, names: Iterable[str] = COLUMNS) -> dict[str, AnyColumn]:
        """Columns of ascending rows as they are now: [n], of lists [width, n]."""
        return page_access.gather_spans(self.pages, self._spans(rows), len(rows), names)

    def _spans(self, rows: Rows) -> list[Span]:
        if rows is not self._last_rows:
            self._last_rows, self._last_spans = rows, list(spans(rows))
        return self._last_spans

    def write(self, rows: Rows, columns: dict[str, AnyColumn]) -> None:
        """Set columns of strictly ascending rows; lists are ``[width, n]``, what is beyond their width is emptied."""
        self.touch(rows)
        is_blank = {name: self._holds_nothing(name, values) for name, values in columns.items()}
        epochs = {name: _extremes(columns[name]) for name in EPOCH_COLUMNS if name in columns}
        for number, local, at in self._spans(rows):
            if "slots" in columns and len(columns["slots"]) > self.pages[number].width:
                self.widen(number, _slots_used(columns["slots"][:, at]))
            page = self.pages[number]
            for name, values in columns.items():
                if is_blank[name] and getattr(page, name) is blank_column(name, page.width):
                    continue
                target = self._epochs(number, name, *epochs[name]) if name in epochs else self.column(number, name)
                if name in LIST_COLUMNS:
                    # Place by place: both indexes at once take five times as long.
                    shared = min(len(values), len(target))
                    for place in range(shared):
                        target[place][local] = values[place, at]
                    for place in range(shared, len(target)):
                        target[place][local] = LIST_COLUMNS[name][1]
                else:
                    target[local] = values[at]

    @staticmethod
    def _holds_nothing(name: str, values: AnyColumn) -> bool:
        if name in LIST_COLUMNS or name == "topic_ids":
            return False
        return bool((values == blank_column(name, 1)[0]).all())

    def add(self, rows: Rows, name: str, increments: AnyColumn) -> None:
        """Add to an epoch column of strictly ascending rows; ``increments``: int32[n], none is negative.

        Raises:
            ReplayError: a sum is beyond 32 bits, as of an epoch that a log says to be the highest.
        """
        if not increments.any():
            return
        self.touch(rows)
        before = self.gather(rows, (name,))[name]
        after = before + increments
        if (after < before).any():  # numpy wraps in silence
            raise _beyond(name)
        touched = self._spans(rows)
        highest = np.maximum.reduceat(after, [at.start for _, _, at in touched]).tolist()
        for (number, local, at), highest_here in zip(touched, highest, strict=True):
            self._epochs(number, name, 0, highest_here)[local] = after[at]

    def clear(self, rows: Rows) -> None:
        """Empty some rows, ascending."""
        self.touch(rows)
        for number, local, _ in self._spans(rows):
            page = self.pages[number]
            for name in COLUMNS:
                blank = blank_column(name, page.width)
                if getattr(page, name) is blank:
                    continue
                target = self.column(number, name)
                if name in LIST_COLUMNS:
                    target[:, local] = blank[:, local]
                else:
                    target[local] = blank[local]


def _beyond(name: str) -> ReplayError:
    return ReplayError(f"{name.removesuffix('s').replace('_', ' ')}: a number beyond 32 bits")


def _extremes(numbers: AnyColumn) -> tuple[int, int]:
    """The least and the greatest, or 0 where there are none."""
    return (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)


def _slots_used(slots: AnyColumn) -> int:
    return int(np.flatnonzero((slots != NO_BROKER).any(axis=1)).max(initial=-1)) + 1
