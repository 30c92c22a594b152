"""Counts, for each broker, of the partitions that it is preferred for, and of those of them that another one leads.

Counted page by page and kept: pages are immutable, so after a change only those are counted again that it touched, and
a table that was never counted is counted a few pages at a time.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.table.page_access import holds_partition, is_led_by_preferred
from quorate.snapshots.table.pages import Page
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.slot_layout import PREFERRED_SLOT

#: Pages that are counted before others have their turn: with thousands of brokers some 5 ms of work.
COUNTED_PAGES_PER_PASS_MAX: Final = 32


class _PreferencesOfPage(NamedTuple):
    #: Kept with what was counted in it: an identity means something only as long as its object lives.
    page: Page
    #: int32[b]: the brokers that are preferred for any of it.
    brokers: NDArray[np.int32]
    #: int64[b] each.
    preferred: NDArray[np.int64]
    missed: NDArray[np.int64]


class PreferredCounts:
    """Of the table that was looked at last. A memo: what it says depends on that table alone."""

    def __init__(self) -> None:
        self._pages: list[_PreferencesOfPage] = []
        self._preferred: Counter[int] = Counter()
        self._missed: Counter[int] = Counter()

    def refresh(self, table: PartitionTable, pages_max: int | None) -> bool:
        """Count what is not counted yet, ``pages_max`` pages at most (None: all). Whether all is counted now."""
        while len(self._pages) > len(table.pages):
            self._add(self._pages.pop(), -1)
        looked_at = 0
        for number, page in enumerate(table.pages):
            known = self._pages[number] if number < len(self._pages) else None
            if known is not None and known.page is page:
                continue
            if looked_at == pages_max:
                return False
            looked_at += 1
            counted = _count(page)
            self._add(counted, 1)
            if known is None:
                self._pages.append(counted)
            else:
                self._add(known, -1)
                self._pages[number] = counted
        return True

    def missing_more_than(self, percentage: int) -> NDArray[np.int32]:
        """int32[b], ascending: brokers that do not lead more than this share of what they are preferred for."""
        found = [
            broker for broker, missed in self._missed.items() if missed * 100 > self._preferred[broker] * percentage
        ]
        return np.array(sorted(found), np.int32)

    def _add(self, counted: _PreferencesOfPage, sign: int) -> None:
        for total, counts in ((self._preferred, counted.preferred), (self._missed, counted.missed)):
            for broker, count in zip(counted.brokers.tolist(), counts.tolist(), strict=True):
                total[broker] += sign * count


def _count(page: Page) -> _PreferencesOfPage:
    held = holds_partition(page)
    brokers, places = np.unique(page.slots[PREFERRED_SLOT, held], return_inverse=True)
    is_missed = ~is_led_by_preferred(page)[held]
    preferred = np.bincount(places, minlength=len(brokers))
    missed = np.bincount(places[is_missed], minlength=len(brokers))
    return _PreferencesOfPage(page, brokers.astype(np.int32), preferred, missed)
