"""Partitions and replicas of a table by what they are: everything that is counted is a sum over these cells.

No config is in it but the ``min.insync.replicas`` that topics have of their own, and no broker's state: the cluster's
own value may change, and a broker die, without a partition being looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.records.config_texts import as_whole
from quorate.snapshots.counts.cells import Cells, Numbers

# A partition's shape: flags, then members of the ISR, replicas and the topic's own min ISR, with seven bits each.
OFFLINE: Final = 1 << 0
#: Without a leader, as it was created.
NEW: Final = 1 << 1
UNDER_REPLICATED: Final = 1 << 2
NOT_PREFERRED: Final = 1 << 3
REASSIGNING: Final = 1 << 4
RECOVERING: Final = 1 << 5
ISR_SHIFT: Final = 6
REPLICAS_SHIFT: Final = 13
OWN_SHIFT: Final = 20
_NUMBER_MASK: Final = (1 << 7) - 1

# A replica's part in its partition.
IN_SYNC: Final = 1 << 0
LEADS: Final = 1 << 1
ADDING: Final = 1 << 2

#: Slots of the widest row, and so the most that a ``min.insync.replicas`` can ask for.
_REPLICAS_MAX: Final = 64
_SHAPE: Final = 1
_REPLICA: Final = 4


class Shapes(NamedTuple):
    """The shapes of c cells, taken apart."""

    flags: Numbers
    in_sync: Numbers
    replicas: Numbers
    #: ``own_min_isr_code`` of the topic.
    own: Numbers

    def above_min_isr(self, cluster_min_isr: int) -> Numbers:
        """int64[c]: members of the ISR beyond those that must be; ``cluster_min_isr``: where topics have none."""
        needed = np.where(self.own, self.own - 1, cluster_min_isr)
        return self.in_sync - np.minimum(self.replicas, needed)

    def are(self, flags: int) -> NDArray[np.bool_]:
        """bool[c]: whether any of these flags is set."""
        found: NDArray[np.bool_] = (self.flags & flags) != 0
        return found


class TableTally(NamedTuple):
    """The counts of one table."""

    #: Partitions by shape.
    partitions: Cells = Cells.none(_SHAPE)
    #: Replicas by broker, directory (code of the table's dictionary), part in the partition, and its shape.
    replicas: Cells = Cells.none(_REPLICA)

    @property
    def shapes(self) -> Shapes:
        """Those of ``partitions``."""
        return _taken_apart(self.partitions.keys[0])

    @property
    def replica_shapes(self) -> Shapes:
        """Those of ``replicas``."""
        return _taken_apart(self.replicas.keys[3])

    @staticmethod
    def total(parts: Iterable[tuple[TableTally, int]]) -> TableTally:
        """The sum of some, each times a number: -1 takes away."""
        given = list(parts)
        return TableTally(
            Cells.total(((tally.partitions, times) for tally, times in given), _SHAPE),
            Cells.total(((tally.replicas, times) for tally, times in given), _REPLICA),
        )


def missing_replicas(counts: NDArray[np.uint8], isr: NDArray[Any], adding: NDArray[Any]) -> NDArray[Any]:
    """uint[n], sets of slots: the replicas that are not in sync, and are not only being added.

    Args:
        counts: of each one's replicas.
    """
    missing: NDArray[Any] = _first_slots(isr.dtype)[counts] & ~(isr | adding)
    return missing


def own_min_isr_code(text: str | None) -> int:
    """A topic's own ``min.insync.replicas`` in eight bits: 0 where it has none that is a number, else one more than it.

    More than a partition can have replicas comes to the same as so many, and less than none to none.
    """
    number = None if text is None else as_whole(text.strip())
    return 0 if number is None else min(max(number, 0), _REPLICAS_MAX) + 1


def _taken_apart(shapes: Numbers) -> Shapes:
    return Shapes(
        shapes & ((1 << ISR_SHIFT) - 1),
        shapes >> ISR_SHIFT & _NUMBER_MASK,
        shapes >> REPLICAS_SHIFT & _NUMBER_MASK,
        shapes >> OWN_SHIFT,
    )


@cache
def _first_slots(kind: np.dtype[Any]) -> NDArray[Any]:
    """For each count of slots from 0 up to the type's bits the set of the first ones."""
    return np.array([(1 << count) - 1 for count in range(8 * kind.itemsize + 1)], kind)
