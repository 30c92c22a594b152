"""The ISRs that leaders ask for once every replica that runs has caught up with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.columns import NO_SLOT, PADDING, compact, slots_of
from quorate.controller.protocol.altered_partitions import AlterPartitionColumns
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition import RECOVERED
from quorate.snapshots.table.partition_columns import PartitionColumns

#: Partitions of one request.
_ROWS_AT_ONCE: Final = 65_536
#: A member's epoch that a leader does not say: whoever is active may be in an ISR then.
_UNSAID: Final = -1


def requests_of_leaders(image: MetadataImage, leader_id: int) -> Iterator[AlterPartitionColumns]:
    """For the partitions that a broker leads in this state: what it asks for, where that is not what there is."""
    rows = image.partitions.rows_led_by(leader_id)
    brokers = broker_columns(image)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        columns = image.partitions.gather(rows[first : first + _ROWS_AT_ONCE])
        able = columns.slots_in(brokers.active_ids) & brokers.online.replicas(columns) & columns.replicas
        is_behind = ((able & ~columns.isr) != 0) | (columns.recovery_states != RECOVERED)
        if is_behind.any():
            chosen = np.flatnonzero(is_behind)
            yield _asked(image.partitions.gather(columns.rows[chosen]), able[chosen])


def _asked(columns: PartitionColumns, able: np.ndarray) -> AlterPartitionColumns:
    count, width = columns.isr_order.shape
    slots = np.broadcast_to(np.arange(width, dtype=np.uint8), (count, width))
    new = slots_of(able & ~columns.isr, width)
    # Who is in sync stays in its order; who has caught up comes behind.
    both = np.concatenate([columns.isr_order, slots], axis=1)
    order = compact(both, np.concatenate([columns.isr_order != NO_SLOT, new], axis=1), NO_SLOT)[:, :width]
    at = np.minimum(order, width - 1).astype(np.intp)
    isr = np.where(order == NO_SLOT, PADDING, np.take_along_axis(columns.slots, at, axis=1)).astype(np.int32)
    return AlterPartitionColumns(
        topic_ids=columns.topic_ids,
        partition_ids=columns.partition_ids,
        leader_epochs=columns.leader_epochs,
        partition_epochs=columns.partition_epochs,
        leader_recovery_states=np.full(count, RECOVERED, np.int8),
        new_isr=isr,
        new_isr_epochs=np.full(isr.shape, _UNSAID, np.int64),
    )
