"""AlterPartition: a leader asks for other ISRs; reassignments complete through it.

A request of models is turned into columns, and a bulk request comes as columns. Few partitions are then taken one by
one, as plain values; many all at once. Both ways check by ``isr_change_checks`` and decide by ``partitions.rules``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import partition_version
from quorate.controller.partitions.alter_partition_row import UNSAID_EPOCH, AlteredRow, AskedIsr, alter_row
from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.broker_epoch import check_broker_epoch
from quorate.controller.partitions.columns import NO_SLOT, Flags, Masks, PartitionChanges, PartitionTargets, Slots
from quorate.controller.partitions.isr_change_checks import IsrChangeFacts, isr_change_rules
from quorate.controller.partitions.row import PartitionRow, read_row
from quorate.controller.partitions.rules import decide_patterns
from quorate.controller.partitions.view import PartitionView, rule_settings, view_columns, view_runs
from quorate.controller.protocol import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
)
from quorate.controller.protocol.altered_partitions import AlteredPartitions, AlterPartitionColumns
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import NO_PARTITION
from quorate.snapshots.table.partition import RECOVERING
from quorate.snapshots.table.partition_columns import PartitionColumns

#: Padding of lists of brokers in requests and replies.
NO_BROKER: Final = -1
#: Requests of so few partitions are taken one by one: 0.1 ms each, where columns take 1.5 ms for any of these.
FEW: Final = 8


def decide_alter_partition(
    image: MetadataImage, config: ControllerConfig, request: AlterPartitionRequest
) -> Decision[AlterPartitionResponse]:
    """``decide_alter_partition_columns`` for a request of models."""
    decision = decide_alter_partition_columns(
        image, config, request.broker_id, request.broker_epoch, columns_of(request)
    )
    response = _response(request, decision.reply)
    return Decision(decision.records, response, is_atomic=False)


def decide_alter_partition_columns(
    image: MetadataImage,
    config: ControllerConfig,
    broker_id: int,
    broker_epoch: int,
    asked: AlterPartitionColumns,
) -> Decision[AlteredPartitions]:
    """Change the ISRs of partitions that the broker leads. Each partition succeeds or fails by itself.

    Where the change takes leadership from the broker, it is made and answered with NEW_LEADER_ELECTED.

    Raises:
        ApiError: STALE_BROKER_EPOCH.
    """
    check_broker_epoch(image, broker_id, broker_epoch)
    reply = _blank_reply(asked)
    if len(asked.partition_ids) <= FEW:
        rows = image.partitions.rows_for(asked.topic_ids, asked.partition_ids)
        known = _known(image, asked, rows, reply.error_codes)
        partitions = {at: read_row(image, config, int(rows[at])) for at in known.tolist()}
        if not any(partition.is_reassigning for partition in partitions.values()):
            return _decide_few(image, config, broker_id, asked, partitions, reply)
    known, columns = _find(image, asked, reply.error_codes)
    if not len(known):
        return Decision((), reply, is_atomic=False)
    part = asked if len(known) == len(asked.partition_ids) else _take(asked, known)
    view = view_columns(image, config, columns)
    request = _isr_in_slots(view, part.new_isr)
    codes = _validate(image, view, part, request, broker_id)
    reply.error_codes[known] = codes
    good = codes == 0
    # Rows that are refused ask for what they have.
    is_all_good = bool(good.all())
    targets = PartitionTargets(
        acceptable=view.acceptable,
        min_isr=view.min_isr,
        election=view.election,
        isr=request.mask if is_all_good else np.where(good, request.mask, view.rows.isr),
        isr_order=request.order if is_all_good else np.where(good[:, None], request.order, view.rows.isr_order),
        is_recovering=part.leader_recovery_states == RECOVERING,
    )
    changes, kinds = decide_patterns(view.rows, targets, rule_settings(image, config))
    runs = _runs_of_good(image, view, changes, kinds, good)
    _fill(reply, known, view, changes, kinds, good, broker_id)
    return Decision(runs, reply, is_atomic=False)


def _decide_few(
    image: MetadataImage,
    config: ControllerConfig,
    broker_id: int,
    asked: AlterPartitionColumns,
    partitions: dict[int, PartitionRow],
    reply: AlteredPartitions,
) -> Decision[AlteredPartitions]:
    """``partitions``: those that were found, none of them being reassigned, by their row in the request."""
    settings = rule_settings(image, config)
    version = partition_version(settings.metadata_version)
    records = []
    for at, partition in partitions.items():
        altered = alter_row(image, settings, broker_id, partition, _asked_in(asked, at))
        _fill_row(reply, at, altered)
        if altered.record is not None:
            records.append(VersionedRecord(altered.record, version))
    return Decision(records, reply, is_atomic=False)


def _asked_in(asked: AlterPartitionColumns, at: int) -> AskedIsr:
    members = [
        (broker, epoch)
        for broker, epoch in zip(asked.new_isr[at].tolist(), asked.new_isr_epochs[at].tolist(), strict=True)
        if broker != NO_BROKER
    ]
    return AskedIsr(
        leader_epoch=asked.leader_epochs.item(at),
        partition_epoch=asked.partition_epochs.item(at),
        recovery_state=asked.leader_recovery_states.item(at),
        isr=[broker for broker, _ in members],
        isr_epochs=[epoch for _, epoch in members],
    )


def _fill_row(reply: AlteredPartitions, at: int, altered: AlteredRow) -> None:
    reply.error_codes[at] = altered.error_code
    reply.leaders[at] = altered.leader
    reply.leader_epochs[at] = altered.leader_epoch
    reply.isr[at, : len(altered.isr)] = altered.isr[: reply.isr.shape[1]]
    reply.leader_recovery_states[at] = altered.recovery_state
    reply.partition_epochs[at] = altered.partition_epoch


def columns_of(request: AlterPartitionRequest) -> AlterPartitionColumns:
    """A request of models as columns, in its order."""
    asked = [(topic.topic_id, data) for topic in request.topics for data in topic.partitions]
    width = max((len(data.new_isr_with_epochs) for _, data in asked), default=0)
    isr = np.full((len(asked), max(width, 1)), NO_BROKER, np.int32)
    epochs = np.full(isr.shape, UNSAID_EPOCH, np.int64)
    for at, (_, data) in enumerate(asked):
        for place, member in enumerate(data.new_isr_with_epochs):
            isr[at, place] = member.broker_id
            epochs[at, place] = member.broker_epoch
    return AlterPartitionColumns(
        topic_ids=np.frombuffer(b"".join(topic_id for topic_id, _ in asked), np.uint8).reshape(-1, 16),
        partition_ids=np.array([data.partition_index for _, data in asked], np.int32),
        leader_epochs=np.array([data.leader_epoch for _, data in asked], np.int32),
        partition_epochs=np.array([data.partition_epoch for _, data in asked], np.int32),
        leader_recovery_states=np.array([data.leader_recovery_state for _, data in asked], np.int8),
        new_isr=isr,
        new_isr_epochs=epochs,
    )


@dataclass(frozen=True, slots=True)
class _IsrInSlots:
    """The ISRs asked for, in the slots of a view."""

    #: uint8[n, w]
    order: NDArray[np.uint8]
    mask: Masks
    #: Names somebody who is no replica, or a replica twice.
    has_stranger: Flags


def _blank_reply(asked: AlterPartitionColumns) -> AlteredPartitions:
    count = len(asked.partition_ids)
    return AlteredPartitions(
        error_codes=np.zeros(count, np.int16),
        leaders=np.full(count, NO_BROKER, np.int32),
        leader_epochs=np.full(count, -1, np.int32),
        isr=np.full((count, asked.new_isr.shape[1]), NO_BROKER, np.int32),
        leader_recovery_states=np.zeros(count, np.int8),
        partition_epochs=np.full(count, -1, np.int32),
    )


def _take(asked: AlterPartitionColumns, index: NDArray[np.intp]) -> AlterPartitionColumns:
    return AlterPartitionColumns(*(getattr(asked, name)[index] for name in AlterPartitionColumns.__dataclass_fields__))


def _find(
    image: MetadataImage, asked: AlterPartitionColumns, codes: NDArray[np.int16]
) -> tuple[NDArray[np.intp], PartitionColumns]:
    """The partitions that there are to decide on, and their columns; the others get their code here."""
    table = image.partitions
    rows = table.reserved_rows_for(asked.topic_ids, asked.partition_ids)
    known = _known(image, asked, rows, codes)
    columns = table.gather(rows[known])
    if (columns.partition_ids == NO_PARTITION).any():  # hardly ever: so that is looked for in what is read anyway
        codes[:] = 0
        rows = table.rows_for(asked.topic_ids, asked.partition_ids)
        known = _known(image, asked, rows, codes)
        columns = table.gather(rows[known])
    return known, columns


def _known(
    image: MetadataImage, asked: AlterPartitionColumns, rows: NDArray[np.int64], codes: NDArray[np.int16]
) -> NDArray[np.intp]:
    """The partitions that have a row; those that have none, or are named before, get their code here."""
    unknown = np.flatnonzero(rows < 0)
    for at in unknown.tolist():
        has_topic = asked.topic_ids[at].tobytes() in image.topics.by_id
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if has_topic else ErrorCode.UNKNOWN_TOPIC_ID
        codes[at] = code
    # In the order of the table none is named twice.
    if not (rows[1:] > rows[:-1]).all():
        _, first = np.unique(rows, return_index=True)
        is_repeated = np.ones(len(rows), np.bool_)
        is_repeated[first] = False
        codes[is_repeated & (rows >= 0)] = ErrorCode.INVALID_REQUEST
    return np.flatnonzero(codes == 0)


def _isr_in_slots(view: PartitionView, isr: NDArray[np.int32]) -> _IsrInSlots:
    brokers, counts = view.columns.slots, view.columns.replica_counts
    count, width = brokers.shape
    order = np.full((width, count), NO_SLOT, np.uint8).T  # slot by slot, as the columns of a table
    mask = np.zeros(count, np.uint64)
    has_stranger = np.zeros(count, np.bool_)
    for place in range(isr.shape[1]):
        ids = isr[:, place]
        slot = np.full(count, NO_SLOT, np.uint8)
        for number in range(width):
            np.putmask(slot, (brokers[:, number] == ids) & (counts > number), number)
        bit = np.uint64(1) << slot.astype(np.uint64)
        is_named = ids != NO_BROKER
        has_stranger |= is_named & ((slot == NO_SLOT) | ((mask & bit) != 0))
        mask |= bit  # nothing for NO_SLOT: numpy shifts by 64 and more to 0
        if place < width:
            order[:, place] = slot
    return _IsrInSlots(order, mask, has_stranger)


def _validate(
    image: MetadataImage,
    view: PartitionView,
    asked: AlterPartitionColumns,
    request: _IsrInSlots,
    broker_id: int,
) -> NDArray[np.int16]:
    """The first rule that each row breaks, as an error code; 0 = none."""
    columns = view.columns
    leader_bit = np.uint64(1) << columns.leader_slots.view(np.uint64)
    facts = IsrChangeFacts(
        broker_id=broker_id,
        leader=columns.leaders,
        leader_epoch=columns.leader_epochs,
        partition_epoch=columns.partition_epochs,
        recovery_state=columns.recovery_states,
        asked_leader_epoch=asked.leader_epochs,
        asked_partition_epoch=asked.partition_epochs,
        asked_recovery_state=asked.leader_recovery_states,
        isr_size=np.bitwise_count(request.mask),
        has_stranger=request.has_stranger,
        lacks_leader=(request.mask & leader_bit) == 0,
        has_ineligible=_has_ineligible(image, asked),
    )
    codes = np.zeros(len(columns), np.int16)
    for broken, code in reversed(isr_change_rules(facts)):
        codes[broken] = code
    return codes


def _has_ineligible(image: MetadataImage, asked: AlterPartitionColumns) -> Flags:
    """Whether a member is not active, or is known to the leader under another epoch than its registration's."""
    brokers = broker_columns(image)
    ids, epochs = brokers.active_ids, brokers.active_epochs
    is_named = asked.new_isr != NO_BROKER
    if not len(ids):
        anyone: Flags = is_named.any(axis=1)
        return anyone
    at = np.minimum(np.searchsorted(ids, asked.new_isr), len(ids) - 1)
    is_active = ids[at] == asked.new_isr
    is_epoch_right = (asked.new_isr_epochs == UNSAID_EPOCH) | (asked.new_isr_epochs == epochs[at])
    ineligible: Flags = (is_named & ~(is_active & is_epoch_right)).any(axis=1)
    return ineligible


def _runs_of_good(
    image: MetadataImage,
    view: PartitionView,
    changes: PartitionChanges,
    kinds: NDArray[np.int64] | None,
    good: Flags,
) -> list[PartitionChangeRun]:
    if kinds is not None:
        return view_runs(image, view, changes, np.where(good, kinds, -1))
    changes.has_change[~good] = False
    return view_runs(image, view, changes)


def _fill(
    reply: AlteredPartitions,
    known: NDArray[np.intp],
    view: PartitionView,
    changes: PartitionChanges,
    kinds: NDArray[np.int64] | None,
    good: Flags,
    broker_id: int,
) -> None:
    """The reply's rows of partitions that were decided on."""

    def by_row(column: NDArray[Any]) -> NDArray[Any]:
        return column if kinds is None else column.take(kinds, axis=0)

    columns, count = view.columns, len(known)
    at = slice(None) if count == len(reply.leaders) else known
    # Slot by slot, as they lie in memory: picked from as one flat column.
    brokers, numbers = columns.slots.T.reshape(-1), np.arange(count)

    def brokers_in(slots: Slots) -> NDArray[np.int32]:
        return brokers.take(slots * count + numbers)

    leader, has_leader, has_change = map(by_row, (changes.leader, changes.has_leader, changes.has_change))
    leaders = np.where(leader < 0, NO_BROKER, brokers_in(np.maximum(leader, 0)))
    is_lost = good & has_change & has_leader & (leaders != broker_id)
    reply.error_codes[known[is_lost]] = ErrorCode.NEW_LEADER_ELECTED
    has_isr, new_order = by_row(changes.has_isr), by_row(changes.isr_order)
    for place in range(min(columns.width, reply.isr.shape[1])):
        slots = np.where(has_isr, new_order[:, place], view.rows.isr_order[:, place]).astype(np.int64)
        is_used = slots != NO_SLOT
        reply.isr[at, place] = np.where(is_used, brokers_in(slots * is_used), NO_BROKER)
    reply.leaders[at] = leaders
    reply.leader_epochs[at] = columns.leader_epochs + has_leader
    reply.partition_epochs[at] = columns.partition_epochs + has_change
    reply.leader_recovery_states[at] = by_row(changes.is_recovering)


def _response(request: AlterPartitionRequest, altered: AlteredPartitions) -> AlterPartitionResponse:
    topics = []
    at = 0
    for topic in request.topics:
        results = []
        for data in topic.partitions:
            results.append(_result(data.partition_index, altered, at))
            at += 1
        topics.append(AlterPartitionTopicResult(topic_id=topic.topic_id, partitions=results))
    return AlterPartitionResponse(topics=topics)


def _result(partition: int, altered: AlteredPartitions, at: int) -> AlterPartitionResult:
    code = ErrorCode(int(altered.error_codes[at]))
    if code != ErrorCode.NONE:
        return AlterPartitionResult(partition_index=partition, error_code=code)
    return AlterPartitionResult(
        partition_index=partition,
        leader_id=int(altered.leaders[at]),
        leader_epoch=int(altered.leader_epochs[at]),
        isr=[broker for broker in altered.isr[at].tolist() if broker != NO_BROKER],
        leader_recovery_state=int(altered.leader_recovery_states[at]),
        partition_epoch=int(altered.partition_epochs[at]),
    )
