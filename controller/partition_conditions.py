"""Conditions that a partition may be in, as masks over the rows of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller.controller_config import ControllerConfig
from controller.partition_filter import Condition
from controller.partition_view import min_insync_replicas
from controller.topic_configs import MIN_ISR_CONFIG
from metadata_log.ids import NO_LEADER
from snapshots.image import MetadataImage
from snapshots.image_parts import TOPIC_RESOURCE
from snapshots.page_access import has_leader, holds_partition, is_led_by_preferred
from snapshots.pages import Page

Flags = NDArray[np.bool_]
#: Effective ``min.insync.replicas``: of each row, or one number for all.
MinIsr = NDArray[np.int64] | np.int64

_SLOTS: Final = np.uint64(64)
_ALL: Final = np.uint64(2**64 - 1)


def is_offline(page: Page) -> Flags:
    """Without a leader."""
    return has_leader(page, NO_LEADER)


def is_under_replicated(page: Page) -> Flags:
    """With a replica outside the ISR that is not only being added."""
    counts = page.replica_counts.astype(np.uint64)
    replicas = np.where(counts > 0, _ALL >> (_SLOTS - np.maximum(counts, np.uint64(1))), np.uint64(0))
    has_missing: Flags = (replicas & ~page.isr.astype(np.uint64) & ~page.adding.astype(np.uint64)) != 0
    return has_missing


def is_not_led_by_preferred(page: Page) -> Flags:
    """Led by another than the first replica, or by none."""
    return holds_partition(page) & ~is_led_by_preferred(page)


def is_reassigning(page: Page) -> Flags:
    """With an open reassignment."""
    has_moving: Flags = (page.adding | page.removing) != 0
    return has_moving


def isr_above_min(isr: NDArray[Any], replica_counts: NDArray[Any], min_isr: MinIsr) -> NDArray[np.int64]:
    """How many more are in the ISR than must be: ``min.insync.replicas``, or all replicas if those are fewer.

    Args:
        isr: sets of slots.
    """
    above: NDArray[np.int64] = np.bitwise_count(isr).astype(np.int64)
    above -= np.minimum(replica_counts.astype(np.int64), min_isr)
    return above


def _above_min(page: Page, min_isr: MinIsr) -> NDArray[np.int64]:
    return isr_above_min(page.isr, page.replica_counts, min_isr)


_PREDICATES: Final[Mapping[Condition, Callable[[Page, MinIsr], Flags]]] = {
    "offline": lambda page, _: is_offline(page),
    "under-replicated": lambda page, _: is_under_replicated(page),
    "under-min-isr": lambda page, min_isr: holds_partition(page) & (_above_min(page, min_isr) < 0),
    "at-min-isr": lambda page, min_isr: holds_partition(page) & (_above_min(page, min_isr) == 0),
    "not-preferred": lambda page, _: is_not_led_by_preferred(page),
    "reassigning": lambda page, _: is_reassigning(page),
}


def is_in(page: Page, condition: Condition, min_isr: MinIsr) -> Flags:
    """The rows of a page that are in a condition."""
    return _PREDICATES[condition](page, min_isr)


def min_isr_by_row(image: MetadataImage, config: ControllerConfig) -> MinIsr:
    """``min.insync.replicas`` of every row of the table; one number where no topic has its own."""
    table, default = image.partitions, np.int64(min_insync_replicas(image, config, ""))
    rows: NDArray[np.int64] | None = None
    for (kind, name), configs in image.configs.resources.items():
        topic = image.topics.by_name.get(name) if kind == TOPIC_RESOURCE and MIN_ISR_CONFIG in configs else None
        if topic is not None:
            if rows is None:
                rows = np.full(table.row_end, default)
            own = table.rows_of(topic.id)
            rows[own.start : own.stop] = min_insync_replicas(image, config, name)
    return default if rows is None else rows
