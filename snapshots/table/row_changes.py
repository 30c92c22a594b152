"""One change record on one row, straight to the columns it changes: what most changes of single partitions are.

The same rules as ``Partition.changed_by``; tests hold the two together. It takes some thirty small steps instead of
making two partitions, which is what a busy controller does thousands of times a second.
"""

from __future__ import annotations

from typing import Any

from quorate.metadata_log.ids import NO_LEADER
from quorate.metadata_log.records.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord
from quorate.snapshots.table.pages import NO_BROKER, NO_LEADER_SLOT, Page
from quorate.snapshots.table.partition import RECOVERED, RECOVERING


def columns_in_place(page: Page, local: int, change: PartitionChangeRecord) -> dict[str, Any] | None:
    """The columns of a row that a change record changes, and their values.

    None where the row must be laid out again, because it has or needs slots other than its replicas', or where the
    record is one to be refused: ``Partition.changed_by`` says why.
    """
    slots: list[int] = page.slots[:, local].tolist()
    count = page.replica_counts.item(local)
    has_others = count < len(slots) and slots[count] != NO_BROKER
    if has_others or change.replicas is not None or change.directories:
        return None
    replicas = slots[:count]
    columns: dict[str, Any] = {"partition_epochs": page.partition_epochs.item(local) + 1}
    try:
        if change.isr is not None:
            columns["isr_order"] = order = [replicas.index(broker) for broker in change.isr]
            columns["isr"] = _mask(order)
        if change.leader != NO_LEADER_CHANGE:
            columns["leader_slots"] = NO_LEADER_SLOT if change.leader == NO_LEADER else replicas.index(change.leader)
            columns["leader_epochs"] = page.leader_epochs.item(local) + 1
        for name, ids in (
            ("elr", change.eligible_leader_replicas),
            ("last_known_elr", change.last_known_elr),
            ("adding", change.adding_replicas),
            ("removing", change.removing_replicas),
        ):
            if ids is not None:
                columns[name] = _mask([replicas.index(broker) for broker in ids])
    except ValueError:  # a broker that is no replica, or one named twice
        return None
    state = change.leader_recovery_state
    if state != NO_RECOVERY_CHANGE:
        if state not in (RECOVERED, RECOVERING):
            return None
        columns["recovery_states"] = state
    return columns


def _mask(slots: list[int]) -> int:
    """The set of some slots.

    Raises:
        ValueError: one is named twice.
    """
    mask = 0
    for slot in slots:
        mask |= 1 << slot
    if mask.bit_count() != len(slots):
        raise ValueError("a slot is named twice")
    return mask
