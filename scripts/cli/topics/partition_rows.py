"""Partitions in tables for people: the one place that says what of a partition is shown, and how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.controller.protocol import DescribedPartition
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid, uuid_text

_RESERVED: Final = {
    DIRECTORY_UNASSIGNED: "UNASSIGNED",
    DIRECTORY_LOST: "LOST",
    DIRECTORY_MIGRATING: "MIGRATING",
}

#: The cells of ``partition_row``.
PARTITION_HEADINGS: Final = (
    *("PARTITION", "STATE", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "LAST-KNOWN-ELR", "ADDING", "REMOVING"),
    "OFFLINE",
)


#: Those that most partitions have nothing in.
RARE_HEADINGS: Final = frozenset({"ELR", "LAST-KNOWN-ELR", "ADDING", "REMOVING", "OFFLINE"})


def partition_row(partition: DescribedPartition) -> tuple[str, ...]:
    """One partition."""
    return (
        str(partition.partition_index),
        partition.state.removesuffix("Partition"),
        leader_text(partition.leader_id),
        str(partition.leader_epoch),
        ids_text(partition.replica_nodes),
        ids_text(partition.isr_nodes),
        ids_text(partition.eligible_leader_replicas),
        ids_text(partition.last_known_elr),
        ids_text(partition.adding_replicas),
        ids_text(partition.removing_replicas),
        ids_text(partition.offline_replicas),
    )


def directory_text(directory: Uuid) -> str:
    """The id of a log directory; Kafka's reserved ones by their names."""
    return _RESERVED.get(directory) or uuid_text(directory)


def leader_text(leader: int) -> str:
    """A leader as people read it."""
    return "none" if leader < 0 else str(leader)


def ids_text(ids: Iterable[int]) -> str:
    """Broker ids as Kafka's tools show them; a dash for none."""
    return ",".join(map(str, ids)) or "-"
