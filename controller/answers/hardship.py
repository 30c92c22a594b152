"""Partitions in which clients notice what is wrong, as rows of the table, and what one state has beyond another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_conditions import Flags
from quorate.controller.reads.partition_filter import Condition, PartitionFilter
from quorate.controller.reads.partition_search import matching_rows
from quorate.snapshots.counts import tally
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.page_access import holds_partition
from quorate.snapshots.table.pages import Page, Rows
from quorate.snapshots.table.partition import RECOVERING


class Hardship(NamedTuple):
    """Rows of partitions, ascending. One partition may be among several."""

    #: Without a leader: nobody reads, nobody writes.
    offline: Rows
    #: With fewer in the ISR than `min.insync.replicas`: writes with `acks=all` are refused.
    under_min_isr: Rows
    #: Led by somebody who was elected uncleanly and has not recovered yet: acknowledged writes may be gone.
    recovering: Rows

    @classmethod
    def of(cls, image: MetadataImage, config: ControllerConfig) -> Hardship:
        """That of a state."""
        recovering = np.empty(0, np.int64)
        if tally_of(image.partitions).shapes.are(tally.RECOVERING).any():
            recovering = image.partitions.select(_is_recovering)
        return cls(_rows_in(image, config, "offline"), _rows_in(image, config, "under-min-isr"), recovering)

    def beyond(self, before: Hardship) -> Hardship:
        """All that was not there before, in a state of the same topics."""
        return Hardship(*(np.setdiff1d(now, then, assume_unique=True) for now, then in zip(self, before, strict=True)))

    @property
    def is_none(self) -> bool:
        """Whether nobody notices anything."""
        return not any(map(len, self))


def _is_recovering(page: Page) -> Flags:
    is_so: Flags = holds_partition(page) & (page.recovery_states == RECOVERING)
    return is_so


def _rows_in(image: MetadataImage, config: ControllerConfig, condition: Condition) -> Rows:
    return matching_rows(image, config, PartitionFilter(NamePatterns(), (condition,)))
