"""One change record on one row, straight to the columns it changes: what most changes of single partitions are.

The same rules as ``Partition.changed_by``; tests hold the two together. It takes some thirty small steps instead of
making two partitions, which is what a busy controller does thousands of times a second.
"""

from __future__ import annotations

from typing import Any

from metadata_log.ids import NO_LEADER
from metadata_log.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord
from snapshots.pages import NO_BROKER, NO_LEADER_SLOT, Page
from snapshots.partition import RECOVERED, RECOVERING


def columns_in_place(page: Page, local: int, change: PartitionChangeRecord) -> dict[str, Any] | None:
    """The columns of a row that a change record changes, and their values.

    None where the row must be laid out again, because it has or needs slots other than its replicas', or where the
    record is one to be refused: ``Partition.changed_by`` says why.
    """
    slots: list[int] = page.slots[:, local].tolist()
    count = int(page.replica_counts[local])
    has_others = count < len(slots) and slots[count] != NO_BROKER
    if has_others or change.replicas is not None or change.directories:
        return None
    replicas = slots[:count]
    columns: dict[str, Any] = {"partition_epochs": page.partition_epochs[local] + 1}
    sets = (
        ("isr", change.isr),
        ("elr", change.eligible_leader_replicas),
        ("last_known_elr", change.last_known_elr),
        ("adding", change.adding_replicas),
        ("removing", change.removing_replicas),
    )
    try:
        for name, ids in sets:
            if ids is not None:
                order = [replicas.index(broker) for broker in ids]
                if len(set(order)) != len(order):
                    return None
                columns[name] = sum([1 << slot for slot in order])
                if name == "isr":
                    columns["isr_order"] = order
        if change.leader != NO_LEADER_CHANGE:
            columns["leader_slots"] = NO_LEADER_SLOT if change.leader == NO_LEADER else replicas.index(change.leader)
            columns["leader_epochs"] = page.leader_epochs[local] + 1
    except ValueError:  # a broker that is no replica
        return None
    state = change.leader_recovery_state
    if state != NO_RECOVERY_CHANGE:
        if state not in (RECOVERED, RECOVERING):
            return None
        columns["recovery_states"] = state
    return columns
