"""The previous places of the partitions of a page, so that what is remembered of them can be carried over.

A partition keeps its row unless its topic grew and was moved to other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page
from quorate.snapshots.table.partition_table import PartitionTable

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Remembered(Protocol):
    """The rows of a page as they are remembered."""

    page: Page
    #: int64[n], ascending: rows within the page.
    rows: Ints


R = TypeVar("R", bound=Remembered)


class Carried(NamedTuple):
    """Rows that are remembered from one page."""

    #: Positions among the new rows, and among the old ones.
    new_at: Ints
    old_at: Ints


def remembered(
    before: PartitionTable, pages: Mapping[int, R], table: PartitionTable, number: int, rows: Ints
) -> Iterator[tuple[R, Carried]]:
    """For rows of page ``number`` of ``table``: where ``pages`` (by number, of the table ``before``) have them."""
    if not pages:
        return
    page = table.pages[number]
    old_page = before.pages[number] if number < len(before.pages) else None
    is_moved = _is_moved(page, old_page, rows)
    if is_moved is None:
        old = pages.get(number)
        if old is not None:
            yield old, matched(old, np.arange(len(rows)), rows)
        return
    old_rows = rows + (number << PAGE_SHIFT)
    if is_moved.any():
        moved = rows[is_moved]
        old_rows[is_moved] = before.rows_for(page.topic_ids[moved], page.partition_ids[moved])
    sources = old_rows >> PAGE_SHIFT
    for source in np.unique(sources[old_rows >= 0]).tolist():
        old = pages.get(source)
        if old is not None:
            new_at = np.flatnonzero((sources == source) & (old_rows >= 0))
            yield old, matched(old, new_at, old_rows[new_at] & (PAGE_ROWS - 1))


def matched(old: Remembered, new_at: Ints, wanted: Ints) -> Carried:
    """Those of the new rows whose rows in an old page, ``wanted``, are remembered from it."""
    if not len(old.rows):
        return Carried(new_at[:0], new_at[:0])
    old_at = np.minimum(np.searchsorted(old.rows, wanted), len(old.rows) - 1)
    is_known = old.rows[old_at] == wanted
    return Carried(new_at[is_known], old_at[is_known])


def slot_pairs(new: Page, old: Page) -> Iterable[tuple[int, int]]:
    """The slots of a new and of an old page in which one broker may stand in a row that both have."""
    if new.slots is old.slots:  # a broker stands in one slot of a row
        return zip(range(new.width), range(old.width), strict=True)
    return product(range(new.width), range(old.width))


def _is_moved(page: Page, before: Page | None, rows: Ints) -> Flags | None:
    """Whether each row held another partition before; None: none did, at a glance."""
    if before is None:
        return np.ones(len(rows), np.bool_)
    if page.topic_ids is before.topic_ids and page.partition_ids is before.partition_ids:
        return None
    is_moved: Flags = page.partition_ids[rows] != before.partition_ids[rows]
    if page.topic_ids is not before.topic_ids:
        is_moved |= (page.topic_ids[rows] != before.topic_ids[rows]).any(axis=1)
    return is_moved


def is_among(ids: NDArray[Any], wanted: NDArray[Any]) -> Flags:
    """bool[...], as ``ids``: whether each of them is among the sorted ``wanted``."""
    if not len(wanted):
        return np.zeros(ids.shape, np.bool_)
    if len(wanted) == 1:  # a process that plays one broker: a tenth of the time
        is_it: Flags = ids == wanted[0]
        return is_it
    found: Flags = wanted[np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)] == ids
    return found


def in_slots(masks: NDArray[np.unsignedinteger], slot: int) -> Flags:
    """bool[n]: whether each set (a mask over slots) holds a slot."""
    held: Flags = (masks & masks.dtype.type(1 << slot)) != 0
    return held


def changed_leaders(old: Page | None, new: Page) -> Ints | None:
    """int64[n], ascending: rows of a page that are led by another one now, or under another epoch.

    None: there was no such page, or, at a glance, more may differ than leaders, ISRs and what follows from them.
    """
    names = ("topic_ids", "partition_ids", "slots", "directories", "replica_counts")
    if old is None or any(getattr(old, name) is not getattr(new, name) for name in names):
        return None
    if old.leader_epochs is new.leader_epochs and old.leader_slots is new.leader_slots:
        return np.empty(0, np.int64)
    return np.flatnonzero((old.leader_epochs != new.leader_epochs) | (old.leader_slots != new.leader_slots))


class ReplacedRows(NamedTuple):
    """The rows of a page of which some are replaced."""

    #: int64[m], ascending: those that stay and the new ones.
    rows: Ints
    #: int64[m]: where each of them stands among those of before, followed by the new ones.
    order: Ints


def with_replaced(rows: Ints, replaced: Ints, new: Ints) -> ReplacedRows:
    """Of ``rows`` of a page, ascending, those not ``replaced``, with the ``new`` ones, which all are replaced."""
    end = 1 + max(int(some[-1]) if len(some) else -1 for some in (rows, replaced))
    is_replaced = np.zeros(end, np.bool_)
    is_replaced[replaced] = True
    kept = np.flatnonzero(~is_replaced.take(rows))
    together = np.concatenate([rows.take(kept), new])
    by_row = np.argsort(together, kind="stable")
    places = np.concatenate([kept, np.arange(len(rows), len(rows) + len(new))])
    return ReplacedRows(together.take(by_row), places.take(by_row))
