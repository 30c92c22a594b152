"""Traces a partition's loss back to a broker event: a search in sorted arrays, a column at a time. Pure.

A controller writes a broker's fencing behind the partition changes it makes (at the end of the batch, or of the last of
several), a controlled shutdown's mark before them. So what lies nearest in time is looked at on both sides, and what is
known of the broker's state at that offset only when nothing lies near.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.snapshots.incidents.brokers import LOSSES, UNFENCED, BrokerEvent

Ints = npt.NDArray[np.int64]

#: No event explains the loss.
NONE: Final = -1
_OFFSET_BITS: Final = 44
_OFFSETS: Final = (1 << _OFFSET_BITS) - 1
#: What a loss may go back to; the last one, a return, only ends a broker's being down.
CAUSES: Final = (*sorted(LOSSES), UNFENCED)
_BACK: Final = len(CAUSES) - 1


class BrokerTimeline:
    """The losing and returning events of all brokers, made to be searched. Small enough to go to every worker."""

    def __init__(self, events: Iterable[BrokerEvent]) -> None:
        kept = sorted((event for event in events if event.kind in CAUSES), key=lambda event: event.offset)
        self._clusters = {name: code for code, name in enumerate(sorted({event.cluster_id for event in kept}))}
        groups = np.array([self._group(event.cluster_id, event.broker_id) for event in kept], np.int64)
        self._groups = np.unique(groups)
        offsets = np.array([event.offset for event in kept], np.int64)
        key = (np.searchsorted(self._groups, groups) << _OFFSET_BITS) | offsets
        order = np.argsort(key, kind="stable")
        self._keys = key[order]
        self._times = np.array([event.at_us for event in kept], np.int64)[order]
        self._kinds = np.array([CAUSES.index(event.kind) for event in kept], np.int64)[order]

    def _group(self, cluster_id: str, broker_id: int) -> int:
        return (self._clusters.get(cluster_id, -1) << 32) | broker_id

    def losses(
        self, cluster_ids: Sequence[str], brokers: Ints, offsets: Ints, times_us: Ints, within_us: int
    ) -> tuple[Ints, Ints]:
        """int64[n], int64[n]: for each loss (columns int64[n]) its cause, as an index into ``CAUSES``, and that event's
        offset: ``NONE`` where no event of the broker explains it."""
        if not len(self._keys):
            return np.full(len(brokers), NONE, np.int64), np.full(len(brokers), NONE, np.int64)
        clusters = np.array([self._clusters.get(name, -1) for name in cluster_ids], np.int64)
        groups = (clusters << 32) | brokers
        index = np.searchsorted(self._groups, groups)
        known = self._groups[np.minimum(index, len(self._groups) - 1)] == groups
        base = index << _OFFSET_BITS
        after = np.searchsorted(self._keys, base | offsets)
        chosen = self._nearest(base, after, offsets, times_us, within_us)
        chosen = np.where(chosen == NONE, self._state(base, after), chosen)
        chosen = np.where(known, chosen, NONE)
        found = chosen != NONE
        return np.where(found, self._kinds[chosen], NONE), np.where(found, self._keys[chosen] & _OFFSETS, NONE)

    def _nearest(self, base: Ints, after: Ints, offsets: Ints, times_us: Ints, within_us: int) -> Ints:
        """The losing event before or behind that is nearest by time, then by offset, of those within the time."""
        before, behind = (self._candidate(base, at, offsets, times_us, within_us) for at in (after - 1, after))
        closer = (behind[1] < before[1]) | ((behind[1] == before[1]) & (behind[2] < before[2]))
        return np.where(closer, behind[0], before[0])

    def _candidate(
        self, base: Ints, at: Ints, offsets: Ints, times_us: Ints, within_us: int
    ) -> tuple[Ints, Ints, Ints]:
        """The events at these places with their distances in time and offset; ``NONE``, infinitely far, if no loss."""
        inside = (at >= 0) & (at < len(self._keys))
        at = np.where(inside, at, 0)
        delay = np.abs(self._times[at] - times_us)
        inside &= (self._keys[at] >> _OFFSET_BITS) == (base >> _OFFSET_BITS)
        inside &= (self._kinds[at] != _BACK) & (delay <= within_us)
        far = np.iinfo(np.int64).max
        away = np.abs((self._keys[at] & _OFFSETS) - offsets)
        return np.where(inside, at, NONE), np.where(inside, delay, far), np.where(inside, away, far)

    def _state(self, base: Ints, after: Ints) -> Ints:
        """The last event before, if the broker was down from it on."""
        at = np.maximum(after - 1, 0)
        down = (after > 0) & ((self._keys[at] >> _OFFSET_BITS) == (base >> _OFFSET_BITS))
        return np.where(down & (self._kinds[at] != _BACK), at, NONE)
