"""One partition as a value: what a describe shows, and the rules by which records change it.

The rules are those of Kafka's ``PartitionRegistration``; the table applies the same ones to columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.ids import DIRECTORY_MIGRATING, NO_LEADER, Uuid, uuid_text
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX
from quorate.metadata_log.records.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.table.pages import NO_BROKER
from quorate.snapshots.table.reassignment import Assignment

RECOVERED: Final = 0
RECOVERING: Final = 1


@dataclass(frozen=True, slots=True)
class Partition:
    """The state of one partition. Sets without an order of their own are sorted by broker id."""

    #: Ordered: the first is the preferred leader. No duplicates.
    replicas: tuple[int, ...]
    #: One id per replica, in replica order.
    directories: tuple[Uuid, ...]
    #: In the order Kafka keeps: a change of order alone is a change.
    isr: tuple[int, ...]
    #: May hold brokers that are no replicas any more.
    elr: tuple[int, ...]
    #: May hold -1.
    last_known_elr: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    #: -1 = none.
    leader: int
    #: 0 = recovered, 1 = recovering.
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    @property
    def has_leader(self) -> bool:
        """Whether some broker leads it."""
        return self.leader != NO_LEADER

    @property
    def assignment(self) -> Assignment:
        """The replicas, and which of them come and go."""
        return Assignment(self.replicas, self.adding_replicas, self.removing_replicas)

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is open."""
        return self.assignment.is_open

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        """The partition that a record declares.

        Raises:
            ReplayError: duplicates, directories that do not match the replicas, an unknown recovery state.
        """
        replicas = _unique(record, "replicas", record.replicas)
        return cls(
            replicas=replicas,
            directories=_directories(record, record.directories, replicas) or (DIRECTORY_MIGRATING,) * len(replicas),
            isr=_unique(record, "isr", record.isr),
            elr=_as_set(record, "ELR", record.eligible_leader_replicas or ()),
            last_known_elr=_as_set(record, "last-known ELR", record.last_known_elr or ()),
            adding_replicas=_as_set(record, "adding replicas", record.adding_replicas),
            removing_replicas=_as_set(record, "removing replicas", record.removing_replicas),
            leader=record.leader,
            leader_recovery_state=_recovery_state(record, record.leader_recovery_state),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def changed_by(self, change: PartitionChangeRecord) -> Partition:
        """The partition after a change record: +1 partition epoch always, +1 leader epoch if it names a leader.

        Raises:
            ReplayError: duplicates, directories that do not match the replicas, an unknown recovery state.
        """
        replicas = self.replicas if change.replicas is None else _unique(change, "replicas", change.replicas)
        names_leader = change.leader != NO_LEADER_CHANGE
        recovery = change.leader_recovery_state
        return Partition(
            replicas=replicas,
            directories=_directories(change, change.directories or (), replicas) or self._directories_for(replicas),
            isr=self.isr if change.isr is None else _unique(change, "isr", change.isr),
            elr=_changed_set(change, "ELR", self.elr, change.eligible_leader_replicas),
            last_known_elr=_changed_set(change, "last-known ELR", self.last_known_elr, change.last_known_elr),
            adding_replicas=_changed_set(change, "adding replicas", self.adding_replicas, change.adding_replicas),
            removing_replicas=_changed_set(
                change, "removing replicas", self.removing_replicas, change.removing_replicas
            ),
            leader=change.leader if names_leader else self.leader,
            leader_recovery_state=(
                self.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else _recovery_state(change, recovery)
            ),
            leader_epoch=self.leader_epoch + names_leader,
            partition_epoch=self.partition_epoch + 1,
        )

    def _directories_for(self, replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
        """Directories where a record changes the replicas without naming any: kept ones, else MIGRATING.

        Only records from before directories (metadata.version below 17) do that, where all are MIGRATING.
        """
        if replicas == self.replicas:
            return self.directories
        known = dict(zip(self.replicas, self.directories, strict=True))
        return tuple(known.get(replica, DIRECTORY_MIGRATING) for replica in replicas)

    def slots(self) -> tuple[int, ...]:
        """Every broker the partition mentions: the replicas in order, then the others by id.

        Raises:
            ReplayError: more than 64, or one that no broker can be.
        """
        mentioned = {*self.isr, *self.elr, *self.last_known_elr, *self.adding_replicas, *self.removing_replicas}
        if self.leader != NO_LEADER:
            mentioned.add(self.leader)
        slots = (*self.replicas, *sorted(mentioned.difference(self.replicas)))
        if len(slots) > PARTITION_SLOTS_MAX:
            raise ReplayError(f"a partition mentions {len(slots)} brokers, more than {PARTITION_SLOTS_MAX}")
        if NO_BROKER in slots:
            raise ReplayError(f"a partition mentions broker {NO_BROKER}, which stands for no broker")
        return slots

    def to_record(self, topic_id: Uuid, partition_id: int) -> PartitionRecord:
        """The partition as a checkpoint's record; empty ELRs are left out, as Kafka does."""
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=self.directories,
            eligible_leader_replicas=self.elr or None,
            last_known_elr=self.last_known_elr or None,
        )


_AnyRecord = PartitionRecord | PartitionChangeRecord


def _name(record: _AnyRecord) -> str:
    return f"{type(record).__name__} of {uuid_text(record.topic_id)}-{record.partition_id}"


def _unique(record: _AnyRecord, what: str, ids: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(ids)) != len(ids):
        raise ReplayError(f"{_name(record)}: {what} {list(ids)} name a broker twice")
    return ids


def _as_set(record: _AnyRecord, what: str, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(_unique(record, what, ids))) if ids else ()


def _changed_set(
    record: _AnyRecord, what: str, present: tuple[int, ...], ids: tuple[int, ...] | None
) -> tuple[int, ...]:
    return present if ids is None else _as_set(record, what, ids)


def _directories(record: _AnyRecord, directories: tuple[Uuid, ...], replicas: tuple[int, ...]) -> tuple[Uuid, ...]:
    if directories and len(directories) != len(replicas):
        raise ReplayError(f"{_name(record)}: {len(directories)} directories for {len(replicas)} replicas")
    return directories


def _recovery_state(record: _AnyRecord, state: int) -> int:
    if state not in (RECOVERED, RECOVERING):
        raise ReplayError(f"{_name(record)}: leader recovery state {state} is neither 0 nor 1")
    return state
