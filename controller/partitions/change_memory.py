"""Remembers what the rules said of one partition, for all partitions in the same state.

The rules see slots, not brokers, and partitions differ in few ways: what a leader asks for one of them has nearly
always been asked for another in the same state. So the kernel runs once for each such pattern, and a request about a
few partitions looks its outcomes up. A memo only: an answer depends on the pattern and the settings, and on no more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.partitions.columns import NO_SLOT, Masks, Orders, PartitionRows, PartitionTargets
from quorate.controller.partitions.rules import RuleSettings, decide_changes
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.metadata_log.records.records import PartitionChangeRecord

#: Patterns that are remembered, some 2 kB each; a healthy cluster shows a few dozen.
_PATTERNS_MAX: Final = 4096
_NO_DIRECTORIES: Final = np.zeros((1, 16), np.uint8)


class RowPattern(NamedTuple):
    """One partition without a reassignment, and an ISR that is asked for it: everything that the rules look at.

    Sets are masks over the partition's slots, lists are slots; see ``partitions.columns``.
    """

    #: Slots of the partition; the first are its replicas.
    width: int
    replica_count: int
    #: Slot, -1 = none.
    leader: int
    isr_order: tuple[int, ...]
    elr: int
    last_known_elr: int
    is_recovering: bool
    acceptable: int
    #: Effective ``min.insync.replicas``.
    min_isr: int
    #: ELECT_*
    election: int
    #: The ISR asked for: replicas, each once.
    target_isr: tuple[int, ...]
    target_is_recovering: bool


@lru_cache(maxsize=_PATTERNS_MAX)
def change_of(pattern: RowPattern, settings: RuleSettings) -> PartitionChangeRecord | None:
    """The change as a record that names slots instead of brokers and no partition; None = nothing changes."""
    changes = decide_changes(_rows(pattern), _targets(pattern), settings)
    slots = PartitionNames(
        topic_ids=np.zeros((1, 16), np.uint8),
        partition_ids=np.zeros(1, np.int32),
        brokers=np.arange(pattern.width, dtype=np.int32)[None],
        leaders=np.array([pattern.leader], np.int32),
    )
    # Without a reassignment no change has a field that depends on the version or names a directory.
    runs = change_runs(slots, changes, _NO_DIRECTORIES, version=0)
    return runs[0].record(0) if runs else None


def _rows(pattern: RowPattern) -> PartitionRows:
    nobody = _mask(0)
    return PartitionRows(
        replicas=_mask((1 << pattern.replica_count) - 1),
        isr=_mask(_mask_of(pattern.isr_order)),
        isr_order=_order(pattern.isr_order, pattern.width),
        removing=nobody,
        adding=nobody,
        elr=_mask(pattern.elr),
        last_known_elr=_mask(pattern.last_known_elr),
        leader=np.array([pattern.leader], np.int64),
        is_recovering=np.array([pattern.is_recovering]),
        directories=np.zeros((1, pattern.width), np.int32),
    )


def _targets(pattern: RowPattern) -> PartitionTargets:
    return PartitionTargets(
        acceptable=_mask(pattern.acceptable),
        min_isr=np.array([pattern.min_isr], np.int64),
        election=np.array([pattern.election], np.int64),
        isr=_mask(_mask_of(pattern.target_isr)),
        isr_order=_order(pattern.target_isr, pattern.width),
        is_recovering=np.array([pattern.target_is_recovering]),
    )


def _mask_of(slots: tuple[int, ...]) -> int:
    """The set of some slots, each named once."""
    return sum(1 << slot for slot in slots)


def _mask(mask: int) -> Masks:
    return np.array([mask], np.uint64)


def _order(slots: tuple[int, ...], width: int) -> Orders:
    order: NDArray[np.uint8] = np.full((1, width), NO_SLOT, np.uint8)
    order[0, : len(slots)] = slots
    return order
