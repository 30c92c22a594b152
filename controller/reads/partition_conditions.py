"""Conditions that a partition may be in, as masks over the rows of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.reads.partition_filter import Condition
from quorate.metadata_log.ids import NO_LEADER
from quorate.snapshots.counts.tally import NOT_PREFERRED, OFFLINE, REASSIGNING, UNDER_REPLICATED, Shapes
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import own_min_isrs_of
from quorate.snapshots.table.page_access import has_leader, holds_partition, is_led_by_preferred, is_reassigning
from quorate.snapshots.table.pages import AnyColumn, Page

Flags = NDArray[np.bool_]
#: Effective ``min.insync.replicas``: of each row, or one number for all.
MinIsr = NDArray[np.int64] | np.int64


def is_offline(page: Page) -> Flags:
    """bool[PAGE_ROWS]: without a leader."""
    return has_leader(page, NO_LEADER)


def is_under_replicated(page: Page) -> Flags:
    """bool[PAGE_ROWS]: with a replica outside the ISR that is not only being added."""
    replicas = _first_slots(page.isr.dtype)[_replica_counts(page)]
    has_missing: Flags = missing_replicas(replicas, page.isr, page.adding) != 0
    return has_missing


def missing_replicas(replicas: NDArray[Any], isr: NDArray[Any], adding: NDArray[Any]) -> NDArray[Any]:
    """uint[n], sets of slots: the replicas that are not in sync, and are not only being added."""
    missing: NDArray[Any] = replicas & ~(isr | adding)
    return missing


def _replica_counts(page: Page) -> NDArray[np.uint8]:
    """One for each row, or one for all where all have as many, as nearly everywhere: that saves half of the work."""
    counts = page.replica_counts
    first = counts[:1]
    return first if counts.tobytes() == first.tobytes() * len(counts) else counts


@cache
def _first_slots(kind: np.dtype[Any]) -> AnyColumn:
    """For each count of slots from 0 up to the type's bits the set of the first ones."""
    return np.array([(1 << count) - 1 for count in range(8 * kind.itemsize + 1)], kind)


def is_not_led_by_preferred(page: Page) -> Flags:
    """bool[PAGE_ROWS]: led by another than the first replica, or by none."""
    return holds_partition(page) & ~is_led_by_preferred(page)


def isr_above_min(isr: NDArray[Any], replica_counts: NDArray[Any], min_isr: MinIsr) -> NDArray[np.int8]:
    """int8[n]: members of the ISR beyond those that must be, ``min.insync.replicas`` or all replicas if they are fewer.

    Args:
        isr: sets of slots.
    """
    # In bytes, of which a million are few: no partition has more than 64 replicas.
    needed = np.minimum(replica_counts, min_isr).astype(np.int8)
    above: NDArray[np.int8] = np.bitwise_count(isr).view(np.int8) - needed
    return above


def above_min_isr(page: Page, min_isr: MinIsr) -> NDArray[np.int8]:
    """int8[PAGE_ROWS]: ``isr_above_min`` of every row; 0 where it holds no partition."""
    return isr_above_min(page.isr, _replica_counts(page), min_isr)


_PREDICATES: Final[Mapping[Condition, Callable[[Page, MinIsrs], Flags]]] = {
    "offline": lambda page, _: is_offline(page),
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
        self.usual = np.int64(min_insync_replicas(image, config, ""))
        self._own = image.partitions.own_min_isrs

    def of(self, page: Page) -> MinIsr:
        """Of each row of a page; one number where no topic has its own."""
        if not self._own:
            return self.usual
        codes = own_min_isrs_of(page, self._own).astype(np.int64)
        return np.where(codes, codes - 1, self.usual)
