"""Conditions that a partition may be in, as masks over the rows of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.reads.partition_filter import Condition
from quorate.snapshots.counts.tally import (
    NOT_PREFERRED,
    OFFLINE,
    REASSIGNING,
    UNDER_REPLICATED,
    Shapes,
    missing_replicas,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import own_min_isrs_of
from quorate.snapshots.table.page_access import holds_partition, is_leaderless, is_not_led_by_preferred, is_reassigning
from quorate.snapshots.table.pages import Page

Flags = NDArray[np.bool_]
#: Effective ``min.insync.replicas``: of each row, or one number for all.
MinIsr = NDArray[np.int64] | np.int64


def is_under_replicated(page: Page) -> Flags:
    """bool[PAGE_ROWS]: with a replica outside the ISR that is not only being added."""
    has_missing: Flags = missing_replicas(_replica_counts(page), page.isr, page.adding) != 0
    return has_missing


def _replica_counts(page: Page) -> NDArray[np.uint8]:
    """One for each row, or one for all where all have as many, as nearly everywhere: that saves half of the work."""
    counts = page.replica_counts
    first = counts[:1]
    return first if counts.tobytes() == first.tobytes() * len(counts) else counts


def above_min_isr(page: Page, min_isr: MinIsr) -> NDArray[np.int8]:
    """int8[PAGE_ROWS]: members of the ISR beyond those that must be, ``min.insync.replicas`` or all replicas if they
    are fewer; 0 where a row holds no partition.
    """
    # In bytes, of which a million are few: no partition has more than 64 replicas.
    needed = np.minimum(_replica_counts(page), min_isr).astype(np.int8)
    above: NDArray[np.int8] = np.bitwise_count(page.isr).view(np.int8) - needed
    return above


_PREDICATES: Final[Mapping[Condition, Callable[[Page, MinIsrs], Flags]]] = {
    "offline": lambda page, _: is_leaderless(page),
    "under-replicated": lambda page, _: is_under_replicated(page),
    "under-min-isr": lambda page, min_isrs: holds_partition(page) & (above_min_isr(page, min_isrs.of(page)) < 0),
    "at-min-isr": lambda page, min_isrs: holds_partition(page) & (above_min_isr(page, min_isrs.of(page)) == 0),
    "not-preferred": lambda page, _: is_not_led_by_preferred(page),
    "reassigning": lambda page, _: is_reassigning(page),
}


def is_in(page: Page, condition: Condition, min_isrs: MinIsrs) -> Flags:
    """bool[PAGE_ROWS]: the rows of a page that are in a condition."""
    return _PREDICATES[condition](page, min_isrs)


_FLAGS: Final[Mapping[Condition, int]] = {
    "offline": OFFLINE,
    "under-replicated": UNDER_REPLICATED,
    "not-preferred": NOT_PREFERRED,
    "reassigning": REASSIGNING,
}


def cells_in(shapes: Shapes, condition: Condition, min_isrs: MinIsrs) -> Flags:
    """bool[c]: whether cells with these shapes are of partitions in a condition."""
    if condition in _FLAGS:
        return shapes.are(_FLAGS[condition])
    above = shapes.above_min_isr(int(min_isrs.usual))
    return above < 0 if condition == "under-min-isr" else above == 0


class MinIsrs:
    """``min.insync.replicas`` of the partitions of an image, page by page."""

    def __init__(self, image: MetadataImage, config: ControllerConfig) -> None:
        #: Where topics have none of their own.
        self.usual = np.int64(max(min_insync_replicas(image, config, ""), 0))
        self._own = image.partitions.own_min_isrs

    def of(self, page: Page) -> MinIsr:
        """Of each row of a page; one number where no topic has its own."""
        if not self._own:
            return self.usual
        codes = own_min_isrs_of(page, self._own).astype(np.int64)
        return np.where(codes, codes - 1, self.usual)
