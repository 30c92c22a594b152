"""Asks a table again and again whether a row of some kind is in it, and looks only at pages that it does not know."""

from __future__ import annotations

from quorate.snapshots.table.pages import Page, PagePredicate, other_pages
from quorate.snapshots.table.partition_table import PartitionTable


class PageSearch:
    """For one kind of rows. A memo: what it says depends on the table alone. It keeps the pages that it looked at."""

    def __init__(self, predicate: PagePredicate) -> None:
        self._predicate = predicate
        #: The first pages of the table asked about last, in which there is no such row.
        self._without: tuple[Page, ...] = ()

    def any(self, table: PartitionTable) -> bool:
        """Whether there is such a row."""
        for number in other_pages(self._without, table.pages):
            if self._predicate(table.pages[number]).any():
                self._without = table.pages[:number]
                return True
        self._without = table.pages
        return False
