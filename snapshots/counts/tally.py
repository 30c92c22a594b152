"""Partitions and replicas of a table by what they are: everything that is counted is a sum over these cells.

No config is in it but the ``min.insync.replicas`` that topics have of their own, and no broker's state: the cluster's
own value may change, and a broker die, without a partition being looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.records.config_texts import as_whole
from quorate.snapshots.counts.cells import Cells, Numbers

#: The columns of a table that are counted.
COUNTED_COLUMNS: Final = (
    "partition_ids",
    "slots",
    "directories",
    "replica_counts",
    "isr",
    "adding",
    "removing",
    "leader_slots",
    "leader_epochs",
    "partition_epochs",
    "recovery_states",
)

# A partition's shape: flags, then members of the ISR, replicas and the topic's own min ISR, with seven bits each.
OFFLINE: Final = 1 << 0
#: Without a leader, as it was created.
NEW: Final = 1 << 1
UNDER_REPLICATED: Final = 1 << 2
NOT_PREFERRED: Final = 1 << 3
REASSIGNING: Final = 1 << 4
RECOVERING: Final = 1 << 5
_ISR_SHIFT: Final = 6
_REPLICAS_SHIFT: Final = 13
_OWN_SHIFT: Final = 20
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

    @staticmethod
    def of(columns: Mapping[str, NDArray[Any]], own: NDArray[np.uint8] | None) -> TableTally:
        """Of rows, by the columns named in ``COUNTED_COLUMNS``: [n], lists [width, n]; those that hold none are not.

        ``own``: uint8[n], ``own_min_isr_code`` of each row's topic; None: no topic has one.
        """
        held = columns["partition_ids"] >= 0
        if not held.all():
            columns = {name: column[..., held] for name, column in columns.items()}
            own = None if own is None else own[held]
        shapes = _shapes(columns, own)
        return TableTally(Cells.of((shapes,)), _replicas(columns, shapes))


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
        shapes & ((1 << _ISR_SHIFT) - 1),
        shapes >> _ISR_SHIFT & _NUMBER_MASK,
        shapes >> _REPLICAS_SHIFT & _NUMBER_MASK,
        shapes >> _OWN_SHIFT,
    )


def _shapes(columns: Mapping[str, NDArray[Any]], own: NDArray[np.uint8] | None) -> Numbers:
    isr, adding, removing, leader_slots = (columns[name] for name in ("isr", "adding", "removing", "leader_slots"))
    counts = columns["replica_counts"]
    is_offline = leader_slots < 0
    is_as_created = (columns["leader_epochs"] == 0) & (columns["partition_epochs"] == 0)
    flags = is_offline.astype(np.uint8)
    for flag, is_so in (
        (NEW, is_offline & is_as_created),
        (UNDER_REPLICATED, missing_replicas(counts, isr, adding) != 0),
        (NOT_PREFERRED, (leader_slots != 0) | (counts == 0)),
        (REASSIGNING, (adding | removing) != 0),
        (RECOVERING, columns["recovery_states"] != 0),
    ):
        flags |= is_so.view(np.uint8) * np.uint8(flag)
    shapes: Numbers = np.bitwise_count(isr).astype(np.int64) << _ISR_SHIFT
    shapes |= counts.astype(np.int64) << _REPLICAS_SHIFT
    shapes |= flags
    if own is not None:
        shapes |= own.astype(np.int64) << _OWN_SHIFT
    return shapes


def _replicas(columns: Mapping[str, NDArray[Any]], shapes: Numbers) -> Cells:
    parts: list[Sequence[NDArray[Any]]] = []
    counts, isr, adding, leader_slots = (columns[name] for name in ("replica_counts", "isr", "adding", "leader_slots"))
    for slot in range(int(counts.max(initial=0))):
        bit = isr.dtype.type(1 << slot)
        roles = ((isr & bit) != 0).view(np.uint8) * np.uint8(IN_SYNC)
        roles |= (leader_slots == slot).view(np.uint8) * np.uint8(LEADS)
        roles |= ((adding & bit) != 0).view(np.uint8) * np.uint8(ADDING)
        part = (columns["slots"][slot], columns["directories"][slot], roles, shapes)
        has = counts > slot
        parts.append(part if has.all() else [column[has] for column in part])
    return Cells.of(*parts) if parts else Cells.none(_REPLICA)


@cache
def _first_slots(kind: np.dtype[Any]) -> NDArray[Any]:
    """For each count of slots from 0 up to the type's bits the set of the first ones."""
    return np.array([(1 << count) - 1 for count in range(8 * kind.itemsize + 1)], kind)
