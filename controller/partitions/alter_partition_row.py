"""AlterPartition for one partition, on plain values: the rules are those of the columns, and remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.controller.partitions.change_memory import RowPattern, change_of
from quorate.controller.partitions.columns import ELECT_ONLINE, ELECT_UNCLEAN
from quorate.controller.partitions.isr_change_checks import IsrChangeFacts, isr_change_rules
from quorate.controller.partitions.row import PartitionRow
from quorate.controller.partitions.rules import RuleSettings
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition import RECOVERING

#: Epoch of an ISR member that the leader does not say.
UNSAID_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class AskedIsr:
    """The ISR that a leader asks for one partition."""

    #: The state that it starts from.
    leader_epoch: int
    partition_epoch: int
    #: 0 = recovered, 1 = recovering.
    recovery_state: int
    isr: list[int]
    #: Broker epochs of the members, -1 = not said.
    isr_epochs: list[int]


@dataclass(frozen=True, slots=True)
class AlteredRow:
    """The partition after the request. What follows the error code counts only where there is none."""

    error_code: ErrorCode
    #: None = nothing changes.
    record: PartitionChangeRecord | None = None
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    recovery_state: int = 0
    partition_epoch: int = -1


def alter_row(
    image: MetadataImage, settings: RuleSettings, broker_id: int, partition: PartitionRow, asked: AskedIsr
) -> AlteredRow:
    """Change the ISR of a partition without a reassignment, if the broker may."""
    number = {broker: slot for slot, broker in enumerate(partition.brokers[: partition.replica_count])}
    target = tuple(number[broker] for broker in asked.isr if broker in number)
    error = _first_broken(image, broker_id, partition, asked, target)
    if error is not None:
        return AlteredRow(error)
    pattern = RowPattern(
        width=len(partition.brokers),
        replica_count=partition.replica_count,
        leader=partition.leader_slot,
        isr_order=partition.isr_order,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        is_recovering=partition.recovery_state == RECOVERING,
        acceptable=partition.acceptable,
        min_isr=partition.min_isr,
        election=ELECT_UNCLEAN if partition.allows_unclean else ELECT_ONLINE,
        target_isr=target,
        target_is_recovering=asked.recovery_state == RECOVERING,
    )
    change = change_of(pattern, settings)
    record = None if change is None else _named(change, partition)
    return _altered(partition, record, broker_id)


def _first_broken(
    image: MetadataImage, broker_id: int, partition: PartitionRow, asked: AskedIsr, target: tuple[int, ...]
) -> ErrorCode | None:
    members = set(target)
    facts = IsrChangeFacts(
        broker_id=broker_id,
        leader=partition.broker(partition.leader_slot),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        recovery_state=partition.recovery_state,
        asked_leader_epoch=asked.leader_epoch,
        asked_partition_epoch=asked.partition_epoch,
        asked_recovery_state=asked.recovery_state,
        isr_size=len(members),
        has_stranger=len(members) != len(asked.isr),
        lacks_leader=partition.leader_slot not in members,
        has_ineligible=any(map(_is_ineligible, [image] * len(asked.isr), asked.isr, asked.isr_epochs)),
    )
    return next((code for is_broken, code in isr_change_rules(facts) if is_broken), None)


def _is_ineligible(image: MetadataImage, broker_id: int, epoch: int) -> bool:
    broker = image.cluster.brokers.get(broker_id)
    return broker is None or not broker.is_active or epoch not in (UNSAID_EPOCH, broker.epoch)


def _named(change: PartitionChangeRecord, partition: PartitionRow) -> PartitionChangeRecord:
    """A change of slots as that of the partition. Sets are written in ascending order, as Kafka does."""
    isr, elr, last_known = change.isr, change.eligible_leader_replicas, change.last_known_elr
    return PartitionChangeRecord(
        partition_id=partition.partition_id,
        topic_id=partition.topic_id,
        isr=None if isr is None else tuple(map(partition.broker, isr)),
        leader=NO_LEADER_CHANGE if change.leader == NO_LEADER_CHANGE else partition.broker(change.leader),
        leader_recovery_state=change.leader_recovery_state,
        eligible_leader_replicas=None if elr is None else tuple(sorted(map(partition.broker, elr))),
        last_known_elr=None if last_known is None else tuple(sorted(map(partition.broker, last_known))),
    )


def _altered(partition: PartitionRow, record: PartitionChangeRecord | None, broker_id: int) -> AlteredRow:
    isr = tuple(map(partition.broker, partition.isr_order))
    leader, leader_epoch = partition.broker(partition.leader_slot), partition.leader_epoch
    if record is None:
        state, epoch = partition.recovery_state, partition.partition_epoch
        return AlteredRow(ErrorCode.NONE, None, leader, leader_epoch, isr, state, epoch)
    if record.leader != NO_LEADER_CHANGE:
        leader, leader_epoch = record.leader, leader_epoch + 1
    has_recovery = record.leader_recovery_state != NO_RECOVERY_CHANGE
    return AlteredRow(
        error_code=ErrorCode.NONE if leader == broker_id else ErrorCode.NEW_LEADER_ELECTED,
        record=record,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr if record.isr is None else record.isr,
        recovery_state=record.leader_recovery_state if has_recovery else partition.recovery_state,
        partition_epoch=partition.partition_epoch + 1,
    )
