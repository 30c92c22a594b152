"""Changes of partitions between two states: leaders, ISRs, reassignments. Pure, and counted in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.logs.state_changes import NAMED_MAX, Level, StateChange
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import Rows
from quorate.snapshots.table.partition_columns import Masks, PartitionColumns
from quorate.snapshots.table.reassignment import has_moving
from quorate.snapshots.table.table_difference import table_difference

#: Rows that are looked at together: a step of numpy's over them is far below a millisecond, and the loop's thread
#: gets its turn between two steps.
_ROWS: Final = 8192
_RECOVERING: Final = 1
#: Event -> its level, in the order in which they are told.
_EVENTS: Final[dict[str, Level]] = {
    "leaders.lost": "warning",
    "leaders.moved": "info",
    "leaders.moved_uncleanly": "warning",
    "isr.shrunk": "info",
    "isr.grown": "info",
    "reassignments.begun": "info",
    "reassignments.completed": "info",
    "reassignments.cancelled": "info",
    "topics.grown": "info",
}

_Flags = NDArray[np.bool_]


@dataclass(slots=True)
class _Counted:
    """One line in the making."""

    count: int = 0
    rows: list[int] = field(default_factory=list)
    #: Of the count, by kind.
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, rows: Rows, chosen: _Flags, **kinds: _Flags) -> None:
        found = np.flatnonzero(chosen)
        self.count += len(found)
        self.rows += rows[found[: NAMED_MAX - len(self.rows)]].tolist()
        for name, flags in kinds.items():
            self.kinds[name] = self.kinds.get(name, 0) + int(np.count_nonzero(chosen & flags))


def partition_changes(old: MetadataImage, new: MetadataImage) -> Iterator[StateChange]:
    """The lines about partitions that were there and are not as they were."""
    difference = table_difference(old.partitions, new.partitions, of_new_topics=False)
    told = {event: _Counted() for event in _EVENTS}
    for start in range(0, len(difference.rows), _ROWS):
        rows, old_rows = difference.rows[start : start + _ROWS], difference.old_rows[start : start + _ROWS]
        was_there = old_rows >= 0
        _count_added(told["topics.grown"], old, new, rows[~was_there])
        if was_there.any():
            _count(told, old.partitions.gather(old_rows[was_there]), new.partitions.gather(rows[was_there]))
    for event, counted in told.items():
        if counted.count:
            first = [_name(new, row) for row in counted.rows]
            yield StateChange(event, {"count": counted.count, **counted.kinds, "first": first}, _EVENTS[event])


def _name(image: MetadataImage, row: int) -> str:
    topic = image.topics.by_id.get(image.partitions.topic_id(row))
    return f"{'?' if topic is None else topic.name}-{image.partitions.partition_id(row)}"


def _count_added(counted: _Counted, old: MetadataImage, new: MetadataImage, rows: Rows) -> None:
    """Partitions that are new in a topic that is not."""
    if len(rows):
        stretches = TopicStretches.of(new.partitions.column(rows, "topic_ids"))
        is_grown = [topic is not None for topic in old.topics.by_id.get_many(stretches.topics)]
        counted.add(rows, np.repeat(is_grown, stretches.lengths))


def _count(told: dict[str, _Counted], old: PartitionColumns, new: PartitionColumns) -> None:
    rows = new.rows
    led_by, was_led_by = new.leaders, old.leaders
    has_moved = (led_by >= 0) & (led_by != was_led_by)
    chosen = _slot_of(old, led_by)
    is_clean, is_eligible = (chosen & old.isr) != 0, (chosen & old.elr) != 0
    is_recovering = new.recovery_states == _RECOVERING
    is_unclean = has_moved & ~is_clean & ~is_eligible & is_recovering
    is_last_known = (chosen & old.last_known_elr) != 0
    told["leaders.lost"].add(rows, (led_by < 0) & (was_led_by >= 0))
    told["leaders.moved"].add(rows, has_moved & ~is_unclean, from_elr=is_eligible & ~is_clean, from_none=was_led_by < 0)
    told["leaders.moved_uncleanly"].add(rows, is_unclean, last_known=is_last_known)
    size, was_size = np.bitwise_count(new.isr), np.bitwise_count(old.isr)
    told["isr.shrunk"].add(rows, size < was_size, to_one=size == 1, to_none=size == 0)
    told["isr.grown"].add(rows, size > was_size)
    _count_reassignments(told, old, new)


def _count_reassignments(told: dict[str, _Counted], old: PartitionColumns, new: PartitionColumns) -> None:
    rows = new.rows
    was_open, is_open = has_moving(old.adding, old.removing), has_moving(new.adding, new.removing)
    told["reassignments.begun"].add(rows, is_open & ~was_open)
    has_ended = was_open & ~is_open
    if not has_ended.any():
        return
    # Completed: one that was to come is there now; or, where none was to come, one that was to go is not.
    comes = old.adding != 0
    broker = _broker_in(old, np.where(comes, old.adding, old.removing))
    is_there = (_slot_of(new, broker) & new.replicas) != 0
    is_completed = has_ended & (is_there == comes)
    told["reassignments.completed"].add(rows, is_completed)
    told["reassignments.cancelled"].add(rows, has_ended & ~is_completed)


def _slot_of(columns: PartitionColumns, brokers: NDArray[np.int32]) -> Masks:
    """For each row the slot of one broker, as a mask; no bit where it has none."""
    masks = np.zeros(len(columns), np.uint64)
    for slot in range(columns.width):
        masks |= (columns.slots[:, slot] == brokers).astype(np.uint64) << np.uint64(slot)
    return masks


def _broker_in(columns: PartitionColumns, masks: Masks) -> NDArray[np.int32]:
    """For each row one broker of a set, the last by slot; of an empty one that of the first slot."""
    brokers = columns.slots[:, 0].copy()
    for slot in range(columns.width):
        is_in = (masks >> np.uint64(slot)) & np.uint64(1) != 0
        brokers[is_in] = columns.slots[is_in, slot]
    return brokers
