"""The properties that must hold, computed from the log's bytes alone, record by record and row by row.

It shares with production what a single record means (``snapshots.replay.replay``), not how many are read, decided or
counted at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.controller.api.resources import PartitionCounts
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.reads.image_counts import count_image
from quorate.metadata_log.batches.batch import iter_records, parse_header
from quorate.metadata_log.ids import NO_LEADER, Uuid
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    VersionedRecord,
)
from quorate.scripts.simulation.system.said import SaidMember
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.image.invariants import broken_rules
from quorate.snapshots.image_digest import EMPTY_DIGEST, digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.reassignment import WrongStep, step_between

_UNFENCE, _FENCE = -1, 1
_MIN_ISR = "min.insync.replicas"
#: Of a controller with no settings of its own.
_CONFIG: Final = default_parts(node_id=100, cluster_id="simulated").config


class BrokerSessionId(NamedTuple):
    """A registration of a broker."""

    broker_id: int
    broker_epoch: int


class ReplayedLog:
    """The committed log, replayed one record at a time, with the state at every offset."""

    def __init__(self) -> None:
        #: ``states[n]``: after the first n records.
        self.states = [ReplayState()]
        #: ``epochs[n]``: leader epoch of record n.
        self.epochs: list[int] = []
        #: Ends of batches.
        self.batch_ends: list[int] = []
        self.topic_ids: set[Uuid] = set()
        self._digests = {0: EMPTY_DIGEST}
        self._newest_digest = EMPTY_DIGEST
        self._stable_digests = {0: EMPTY_DIGEST}
        #: The broker whose return is being written. It may be elected though it said that it shuts down: only a broker
        #: that takes this back asks to be unfenced (Kafka's ``brokerToAdd``).
        self._unfenced: int | None = None
        self._entered: list[SaidMember] = []
        self._ended: list[BrokerSessionId] = []
        #: By registration: the end of the log when it was unfenced last.
        self.unfenced_ends: dict[BrokerSessionId, int] = {}

    def take_entered(self) -> list[SaidMember]:
        """The replicas that have entered an ISR since this was asked last, other than by being elected."""
        entered, self._entered = self._entered, []
        return entered

    def take_ended(self) -> list[BrokerSessionId]:
        """Sessions of brokers that did not ask for it, which controllers have ended since this was asked last."""
        ended, self._ended = self._ended, []
        return ended

    @property
    def end_offset(self) -> int:
        return len(self.states) - 1

    @property
    def newest(self) -> ReplayState:
        return self.states[-1]

    def add(self, batch: bytes) -> None:
        """The next committed batch, which every invariant must survive."""
        header = parse_header(batch)
        assert header.base_offset == self.end_offset, "the log has a gap"
        assert not self.epochs or header.epoch >= self.epochs[-1], "a leader epoch fell in the log"
        for logged in iter_records(batch):
            before = self.newest
            items = [VersionedRecord(logged.record, logged.version)]
            after = before.replay_items(
                items, logged.offset, header.epoch, header.timestamp, is_control=header.is_control
            )
            self._note_unfenced(logged.record)
            _check_step(before.head, after.head, logged.record, self._unfenced)
            self._entered += _entered(before.head, after.head, logged.record)
            self._ended += _ended(before.head, logged.record)
            self.states.append(after)
            if isinstance(logged.record, BrokerRegistrationChangeRecord) and logged.record.fenced == _UNFENCE:
                registration = BrokerSessionId(logged.record.broker_id, logged.record.broker_epoch)
                self.unfenced_ends[registration] = self.end_offset
            self.epochs.append(header.epoch)
        self.batch_ends.append(header.end_offset)
        self._newest_digest = self._digests[header.end_offset] = digest_image(self.newest.stable, self._newest_digest)
        self._stable_digests[self.newest.stable.provenance.end_offset] = self._newest_digest
        check_image(self.newest.head)
        if self.newest.in_transaction:
            check_image(self.newest.stable)
        self._check_topic_ids()

    @property
    def newest_digest(self) -> bytes:
        """Digest of the newest stable state."""
        return self._newest_digest.value

    def digest_at(self, batch_end: int) -> bytes:
        """Digest of the stable state there."""
        return self._digests[batch_end].value

    def digest_of_stable(self, end_offset: int) -> bytes | None:
        """Digest of the stable state that ends at an offset; None where none does."""
        known = self._stable_digests.get(end_offset)
        return None if known is None else known.value

    def _note_unfenced(self, record: object) -> None:
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == _UNFENCE:
            self._unfenced = record.broker_id
        elif not isinstance(record, PartitionChangeRecord):
            self._unfenced = None

    def _check_topic_ids(self) -> None:
        before = self.states[self.batch_ends[-2] if len(self.batch_ends) > 1 else 0].stable.topics.by_id
        now = self.newest.stable.topics.by_id
        if now is before:
            return
        new = {topic_id for topic_id in now if topic_id not in before}
        assert not new & self.topic_ids, "the id of a deleted topic was given again"
        self.topic_ids |= new


def _partition(image: MetadataImage, topic_id: Uuid, number: int) -> Partition | None:
    row = image.partitions.row(topic_id, number)
    return None if row is None else image.partitions.partition(row)


def _check_step(before: MetadataImage, after: MetadataImage, record: object, unfenced: int | None) -> None:
    """Check one record against what records may do."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        old = _partition(before, record.topic_id, record.partition_id)
        new = _partition(after, record.topic_id, record.partition_id)
        assert new is not None
        _check_change(before, old, new, unfenced)
    elif isinstance(record, RegisterBrokerRecord):
        present = before.cluster.brokers.get(record.broker_id)
        if present is not None:
            assert record.broker_epoch >= present.epoch, f"the epoch of broker {record.broker_id} fell"
            is_same = record.incarnation_id == present.incarnation_id
            assert is_same == (record.broker_epoch == present.epoch), "an incarnation has an epoch of its own"


def _entered(before: MetadataImage, after: MetadataImage, record: object) -> list[SaidMember]:
    if not isinstance(record, PartitionChangeRecord):
        return []
    old = _partition(before, record.topic_id, record.partition_id)
    new = _partition(after, record.topic_id, record.partition_id)
    assert old is not None
    assert new is not None
    members = sorted(set(new.isr) - set(old.isr) - {new.leader})
    return [
        SaidMember(record.topic_id, record.partition_id, old.leader_epoch, broker, after.cluster.brokers[broker].epoch)
        for broker in members
    ]


def _ended(before: MetadataImage, record: object) -> list[BrokerSessionId]:
    """A registration that counted as alive is fenced, or another takes its place. One that leaves has said so."""
    if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced != _FENCE:
        return []
    if not isinstance(record, BrokerRegistrationChangeRecord | RegisterBrokerRecord):
        return []
    known = before.cluster.brokers.get(record.broker_id)
    if known is None or known.is_fenced or known.in_controlled_shutdown:
        return []
    goes_on = isinstance(record, RegisterBrokerRecord) and record.broker_epoch == known.epoch
    return [] if goes_on else [BrokerSessionId(known.id, known.epoch)]


def _check_change(image: MetadataImage, old: Partition | None, new: Partition, unfenced: int | None) -> None:
    had = NO_LEADER if old is None else old.leader
    if old is not None:
        assert new.leader_epoch >= old.leader_epoch, f"leader epoch fell: {old} -> {new}"
        assert new.partition_epoch == old.partition_epoch + 1, f"partition epoch: {old} -> {new}"
        # Nobody else is known to have all that was acknowledged. As in Kafka, a replica that was removed may stay.
        assert set(new.elr) <= {*old.elr, *old.isr}, f"ELR: {old} -> {new}"
        assert new.leader == old.leader or new.leader_epoch > old.leader_epoch, f"leader epoch: {old} -> {new}"
        _check_reassignment(old, new)
    if new.leader not in (had, NO_LEADER):
        broker = image.cluster.brokers.get(new.leader)
        assert broker is not None, f"an unknown broker was elected: {old} -> {new}"
        may_lead = not broker.is_fenced and (not broker.in_controlled_shutdown or broker.id == unfenced)
        assert may_lead, f"a broker that is fenced or shutting down was elected: {old} -> {new}, {broker}"


def _check_reassignment(old: Partition, new: Partition) -> None:
    """A reassignment goes on by the steps of its table only."""
    try:
        step_between(old.assignment, new.assignment, {*old.isr, *new.isr})
    except WrongStep as error:
        raise AssertionError(f"{error}: {old} -> {new}") from error


def check_image(image: MetadataImage) -> None:
    """Check the conditions that hold for every image at the end of a batch."""
    broken = list(broken_rules(image))
    assert not broken, broken
    partitions = {
        (topic_id, number): partition
        for topic_id in image.topics.by_id
        for number, partition in image.partitions.partitions_of(topic_id)
    }
    counted = count_image(image, _CONFIG).counts
    assert counted == _count(image, partitions), "counts"


def _count(image: MetadataImage, partitions: dict[tuple[Uuid, int], Partition]) -> PartitionCounts:
    held = partitions.values()
    above_min_isr = [
        len(p.isr) - min(len(p.replicas), _min_isr(image, image.topics.by_id[topic_id].name))
        for (topic_id, _), p in partitions.items()
    ]
    return PartitionCounts(
        total=len(partitions),
        offline=sum(not p.has_leader for p in held),
        under_replicated=sum(bool(set(p.replicas) - set(p.isr) - set(p.adding_replicas)) for p in held),
        under_min_isr=sum(above < 0 for above in above_min_isr),
        at_min_isr=sum(above == 0 for above in above_min_isr),
        without_preferred_leader=sum(p.leader != p.replicas[0] for p in held),
        reassigning=sum(p.is_reassigning for p in held),
    )


def _min_isr(image: MetadataImage, topic: str) -> int:
    own = image.configs.of(TOPIC_RESOURCE, topic).get(_MIN_ISR)
    return int(own or image.configs.of(BROKER_RESOURCE, "").get(_MIN_ISR, "1"))
