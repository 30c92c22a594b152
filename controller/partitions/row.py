"""One partition as plain values, with all that the rules need to know about it: ``partitions.view`` for few of them."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.columns import NO_SLOT
from quorate.controller.partitions.view import allows_unclean_election, effective_min_isr
from quorate.metadata_log.ids import NO_LEADER, Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT
from quorate.snapshots.table.reassignment import has_moving


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition in one row of the table; slots and sets as in ``PartitionView``."""

    topic_id: Uuid
    partition_id: int
    #: The broker in each slot: the replicas, then others, then unused slots.
    brokers: list[int]
    replica_count: int
    #: -1 = none.
    leader_slot: int
    leader_epoch: int
    partition_epoch: int
    isr_order: tuple[int, ...]
    elr: int
    last_known_elr: int
    #: 0 = recovered, 1 = recovering.
    recovery_state: int
    is_reassigning: bool
    #: Replicas that may lead.
    acceptable: int
    #: Effective ``min.insync.replicas``.
    min_isr: int
    allows_unclean: bool

    def broker(self, slot: int) -> int:
        """The broker in a slot; none for slot -1."""
        return NO_LEADER if slot < 0 else self.brokers[slot]


def read_row(image: MetadataImage, config: ControllerConfig, row: int) -> PartitionRow:
    """The partition in a row that holds one."""
    pages = image.partitions.pages
    page, local = pages[row >> PAGE_SHIFT], row & (PAGE_ROWS - 1)
    topic_id = page.topic_ids[local].tobytes()
    topic = image.topics.by_id.get(topic_id)
    name = "" if topic is None else topic.name
    partition_id, replica_count = page.partition_ids.item(local), page.replica_counts.item(local)
    brokers: list[int] = page.slots[:, local].tolist()
    # The topic's first partition says how many replicas it has: partitions lie in the order of their numbers.
    first = row - partition_id
    factor = pages[first >> PAGE_SHIFT].replica_counts.item(first & (PAGE_ROWS - 1))
    return PartitionRow(
        topic_id=topic_id,
        partition_id=partition_id,
        brokers=brokers,
        replica_count=replica_count,
        leader_slot=page.leader_slots.item(local),
        leader_epoch=page.leader_epochs.item(local),
        partition_epoch=page.partition_epochs.item(local),
        isr_order=tuple(slot for slot in page.isr_order[:, local].tolist() if slot != NO_SLOT),
        elr=page.elr.item(local),
        last_known_elr=page.last_known_elr.item(local),
        recovery_state=page.recovery_states.item(local),
        is_reassigning=has_moving(page.adding.item(local), page.removing.item(local)),
        acceptable=_acceptable(image, brokers[:replica_count], page.directories[:replica_count, local].tolist()),
        min_isr=effective_min_isr(image, config, name, factor),
        allows_unclean=allows_unclean_election(image, config, name),
    )


def _acceptable(image: MetadataImage, replicas: list[int], directories: list[int]) -> int:
    """The replicas on an active broker that has their directory, given by code, online."""
    acceptable, bit = 0, 1
    for broker_id, code in zip(replicas, directories, strict=True):
        broker = image.cluster.brokers.get(broker_id)
        if broker is not None and broker.is_active and broker.has_online(image.partitions.directories.uuid(code)):
            acceptable |= bit
        bit <<= 1
    return acceptable
