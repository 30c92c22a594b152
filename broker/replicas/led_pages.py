"""The partitions that are led here and what is known of their followers, page by page of the partition table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from quorate.broker.directories.places import Carried, Ints, changed_leaders, in_slots, is_among, matched, remembered
from quorate.broker.replicas.joined_pages import (
    LEADER_COLUMNS,
    JoinedPages,
    rows_of_brokers,
    table_rows,
    with_leaders_of,
)
from quorate.broker.replicas.led_rows import ALWAYS, UNKNOWN, LedRows, carry, with_others
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page, other_pages

#: What is looked at of rows that are led by another one or have another ISR.
_MOVED_COLUMNS: Final = ("slots", "replica_counts", *LEADER_COLUMNS)


class LedPages:
    """See the module. Only pages that changed are looked at when an image comes."""

    def __init__(self, *, trusts_isr: bool) -> None:
        """``trusts_isr``: see ``IsrBook``."""
        self.image = EMPTY_IMAGE
        #: The brokers that are played here.
        self.leaders: frozenset[int] = frozenset()
        #: By number; none without rows.
        self.pages: dict[int, LedRows] = {}
        #: Those of them that may want a look, now or at a time; of the others none is due or awaited before something
        #: happens. Of a large image they are few, and all that every turn looks at.
        self.open: set[int] = set()
        self._trusts_isr = trusts_isr

    def update(self, image: MetadataImage, leaders: frozenset[int], now_ms: float) -> None:
        """Take a new image, and the brokers that are played here."""
        before, self.image = self.image, image
        is_same_cast = self.leaders == leaders
        self.leaders = leaders
        old_pages, pages = before.partitions.pages, image.partitions.pages
        fresh: dict[int, LedRows] = {}
        moved: dict[int, Ints] = {}
        for number in other_pages(old_pages if is_same_cast else (), pages):
            known = self.pages.get(number) if is_same_cast else None
            changed = None if known is None else changed_leaders(known.page, pages[number])
            if changed is None:
                fresh[number] = self._scan(before, number, now_ms)
            else:
                moved[number] = changed
        if moved:
            fresh.update(self._with_moved(before, moved, now_ms))
        for number, led in fresh.items():
            if len(led.rows):
                self.pages[number] = led
                self.open.add(number)
            else:
                self._drop(number)
        for number in range(len(pages), len(old_pages)):
            self._drop(number)

    def places(self, rows: Ints) -> dict[int, Ints]:
        """By page int64[m], ascending: positions of those of some rows of the table, in any order, led here."""
        numbers = np.flatnonzero(np.bincount(rows >> PAGE_SHIFT)).tolist()
        pages = JoinedPages.of_rows(numbers, rows)
        return {
            number: at
            for number, local, _ in pages.parts(np.arange(len(pages.rows)))
            if number in self.pages and len(at := self.pages[number].found(local))
        }

    def taken(self, places: Mapping[int, Ints], names: Sequence[str]) -> tuple[JoinedPages, LedRows]:
        """Copies of some rows, positions by page, as those of one page with these columns."""
        parts = [self.pages[number].taken(at) for number, at in places.items()]
        joined = JoinedPages.of({number: part.rows for number, part in zip(places, parts, strict=True)})
        page = joined.page(self.image.partitions.pages, names)
        return joined, LedRows.joined(page, np.arange(len(joined.rows)), parts)

    def _drop(self, number: int) -> None:
        self.pages.pop(number, None)
        self.open.discard(number)

    def _scan(self, before: MetadataImage, number: int, now_ms: float) -> LedRows:
        """The rows of a page that are led here; of those known before under the same leader epoch all is kept."""
        table = self.image.partitions
        page = table.pages[number]
        rows = self._led(page, np.arange(PAGE_ROWS))
        led = self._found(page, rows, remembered(before.partitions, self.pages, table, number, rows), now_ms)
        led.look()
        return led

    def _with_moved(
        self, before: MetadataImage, moved: Mapping[int, Ints], now_ms: float
    ) -> Iterator[tuple[int, LedRows]]:
        """Pages in which some rows (by page, ascending, or none) have another leader, and nothing but that, ISRs and
        what follows from them is new.
        """
        pages = self.image.partitions.pages
        known = {number: self.pages[number] for number in moved}
        rows = table_rows({number: one.rows for number, one in known.items()})
        leaders = np.array(sorted(self.leaders), np.int32)
        changed = rows_of_brokers(moved, pages, leaders)  # who leads, and who led, is a replica
        joined = JoinedPages.of_rows(moved, rows, changed)
        page = joined.page(pages, _MOVED_COLUMNS)
        old_page = with_leaders_of(joined.page(before.partitions.pages, LEADER_COLUMNS), page)
        old = LedRows.joined(old_page, np.searchsorted(joined.rows, rows), list(known.values()))
        replaced = np.searchsorted(joined.rows, changed)
        rows = self._led(page, replaced)
        found = self._found(page, rows, [(old, matched(old, np.arange(len(rows)), rows))], now_ms)
        for number, led in with_others(old, replaced, found).parted(joined, pages):
            led.awaited = known[number].awaited
            if known[number].next_due_ms == -np.inf:  # it waits for a look
                led.next_due_ms = -np.inf
            yield number, led

    def _led(self, page: Page, rows: Ints) -> Ints:
        """Those of the rows that are led here and have followers."""
        rows = rows[(page.leader_slots[rows] >= 0) & (page.replica_counts[rows] > 1)]
        leaders = page.slots[page.leader_slots[rows], rows]
        return rows[is_among(leaders, np.array(sorted(self.leaders), np.int32))]

    def _found(self, page: Page, rows: Ints, carried: Iterable[tuple[LedRows, Carried]], now_ms: float) -> LedRows:
        """These rows, which are led here. ``carried``: what is remembered of them."""
        led = LedRows(
            page,
            rows,
            np.full((page.width, len(rows)), UNKNOWN),
            np.zeros((page.width, len(rows)), np.bool_),
            np.full(len(rows), -np.inf),
            np.ones(len(rows), np.bool_),
        )
        for slot in range(page.width):
            led.caught_up_ms[slot, in_slots(page.isr[rows], slot)] = ALWAYS if self._trusts_isr else now_ms
        for old, (new_at, old_at) in carried:
            carry(led, new_at, old, old_at)
        return led
