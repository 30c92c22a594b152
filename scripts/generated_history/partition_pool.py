"""Every partition of the made-up cluster as rows of numpy columns: what a change of them must respect.

Sets of brokers are masks over a row's *slots*, its replicas in their order. While a reassignment is open, the replicas
to be removed stand last. Rows of deleted topics are used again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Replicas a partition can have, those of an open reassignment included.
SLOTS: Final = 8
#: No broker, in a column of broker ids.
NOBODY: Final = -1

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
Masks = NDArray[np.uint8]
Ids = NDArray[np.int32]

_BIT: Final = (1 << np.arange(SLOTS)).astype(np.uint8)


@dataclass(slots=True)
class Columns:
    """The same partitions in every column; a table of its own, or rows taken out of one."""

    #: Number of its topic: see ``TopicPool``.
    topic: Ids
    #: Its number in the topic.
    number: Ids
    #: int32[n, SLOTS], NOBODY behind the last one.
    replicas: Ids
    #: int32[n, SLOTS]: codes of ``DirectoryCodes``.
    directories: Ids
    isr: Masks
    elr: Masks
    adding: Masks
    removing: Masks
    #: The slot that leads, or NOBODY.
    leader: NDArray[np.int8]
    last_known_leader: Ids
    is_recovering: Flags

    def __len__(self) -> int:
        return len(self.topic)

    def take(self, rows: Rows | Flags) -> Columns:
        """Copies of some rows."""
        return Columns(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def put(self, rows: Rows, changed: Columns) -> None:
        """Overwrite some rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(changed, field.name)

    @property
    def replica_count(self) -> NDArray[np.int64]:
        """Replicas of each row, those being added and removed included."""
        count: Rows = (self.replicas != NOBODY).sum(axis=1)
        return count

    @property
    def leader_id(self) -> Ids:
        """The broker that leads each row, or NOBODY."""
        found: Ids = self.replicas[np.arange(len(self)), np.maximum(self.leader, 0)]
        return np.where(self.leader < 0, np.int32(NOBODY), found)


def empty_columns(count: int) -> Columns:
    """Rows without replicas."""

    def zeros(kind: Any) -> NDArray[Any]:
        return np.zeros(count, kind)

    return Columns(
        topic=zeros(np.int32),
        number=zeros(np.int32),
        replicas=np.full((count, SLOTS), NOBODY, np.int32),
        directories=np.zeros((count, SLOTS), np.int32),
        isr=zeros(np.uint8),
        elr=zeros(np.uint8),
        adding=zeros(np.uint8),
        removing=zeros(np.uint8),
        leader=np.full(count, NOBODY, np.int8),
        last_known_leader=np.full(count, NOBODY, np.int32),
        is_recovering=zeros(np.bool_),
    )


class PartitionPool:
    """The table, and which of its rows are in use."""

    def __init__(self) -> None:
        self.columns = empty_columns(0)
        self.is_held: Flags = np.zeros(0, np.bool_)
        #: Partitions there are.
        self.held_count = 0
        self._free: list[Rows] = []

    def allocate(self, count: int) -> Rows:
        """Ascending rows for new partitions, free until they are put."""
        while self._free:
            free = self._free.pop()
            if len(free) >= count:
                if len(free) > count:
                    self._free.append(free[count:])
                return free[:count]
        first = len(self.columns)
        grown = max(count, first // 4, 1024)
        added = empty_columns(grown)
        for field in fields(self.columns):
            name = field.name
            setattr(self.columns, name, np.concatenate([getattr(self.columns, name), getattr(added, name)]))
        self.is_held = np.concatenate([self.is_held, np.zeros(grown, np.bool_)])
        rows = np.arange(first, first + grown)
        if grown > count:
            self._free.append(rows[count:])
        return rows[:count]

    def hold(self, rows: Rows, columns: Columns) -> None:
        """New partitions."""
        self.columns.put(rows, columns)
        self.is_held[rows] = True
        self.held_count += len(rows)

    def release(self, rows: Rows) -> None:
        """Partitions are gone."""
        if len(rows):
            self.columns.replicas[rows] = NOBODY
            self.is_held[rows] = False
            self.held_count -= len(rows)
            self._free.append(rows)

    def rows_with(self, broker: int) -> Rows:
        """The partitions that have a replica on a broker."""
        return np.flatnonzero((self.columns.replicas == broker).any(axis=1))


def bit_of(columns: Columns, broker: int) -> Masks:
    """The slot of a broker as a mask; 0 where it is no replica."""
    return members(columns.replicas == broker)


def members(flags: Flags) -> Masks:
    """bool[n, SLOTS] as masks."""
    packed: Masks = np.packbits(flags, axis=1, bitorder="little")[:, 0]
    return packed


def flags_of(masks: Masks) -> Flags:
    """Masks as bool[n, SLOTS]."""
    return np.unpackbits(masks[:, None], axis=1, bitorder="little").astype(np.bool_)


def bit(slots: NDArray[Any]) -> Masks:
    """Slots as masks; NOBODY is the empty one."""
    return np.where(slots < 0, np.uint8(0), _BIT[np.maximum(slots, 0)])
