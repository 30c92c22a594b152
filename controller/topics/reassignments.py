"""Partition reassignments: start, cancel, list.

A reassignment that is started goes on by itself: its leader adds replicas to the ISR through AlterPartition, and
the rules of ``controller.partitions.rules`` complete it. The replicas of a partition are new here, so its slots are
laid out anew: target replicas first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import partition_version
from quorate.controller.partitions.columns import (
    ELECT_ONLINE,
    ELECT_UNCLEAN,
    NO_SLOT,
    Masks,
    Orders,
    PartitionRows,
    PartitionTargets,
)
from quorate.controller.partitions.rules import decide_changes
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.controller.partitions.view import allows_unclean_election, effective_min_isr, rule_settings
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResult,
    ReassignableTopicResult,
)
from quorate.controller.topics.assignments import check_assignment
from quorate.controller.topics.broker_choices import default_directory
from quorate.controller.topics.reassignment_rules import revert_reassignment, start_reassignment
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.table.pages import NO_BROKER
from quorate.snapshots.table.partition import Partition


@dataclass(frozen=True, slots=True)
class _Reassignment:
    """The targets of one partition."""

    topic: Topic
    partition_id: int
    present: Partition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    election: int


# --- deciding ----------------------------------------------------------------------------------------


def decide_alter_partition_reassignments(
    image: MetadataImage, config: ControllerConfig, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Start and cancel reassignments, each partition with its own outcome. What is in order is one atomic change."""
    reassignments: dict[tuple[bytes, int], _Reassignment] = {}
    answers = []
    for asked in request.topics:
        topic = image.topics.by_name.get(asked.name)
        results = []
        for target in asked.partitions:
            code, message = ErrorCode.NONE, None
            try:
                change = _plan(image, config, asked.name, topic, target, request.allow_replication_factor_change)
                key = change.topic.id, change.partition_id
                if key in reassignments:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "The partition is named twice in the request.")
                reassignments[key] = change
            except ApiError as error:
                code, message = error.code, error.message
            results.append(
                ReassignablePartitionResult(
                    partition_index=target.partition_index, error_code=code, error_message=message
                )
            )
        answers.append(ReassignableTopicResult(name=asked.name, partitions=results))
    runs = _runs(image, config, list(reassignments.values())) if reassignments else []
    return Decision(runs, AlterPartitionReassignmentsResponse(responses=answers))


def _plan(
    image: MetadataImage,
    config: ControllerConfig,
    name: str,
    topic: Topic | None,
    target: ReassignablePartition,
    allows_factor_change: bool,
) -> _Reassignment:
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    row = image.partitions.row(topic.id, target.partition_index)
    if row is None:
        message = f"Unable to find partition {name}:{target.partition_index}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    present = image.partitions.partition(row)
    if target.replicas is None:
        return _cancel(image, config, topic, target.partition_index, present)
    check_assignment(image, target.replicas, None)
    if not allows_factor_change:
        _check_factor(present, target.replicas)
    return _start(topic, target.partition_index, present, target.replicas)


def _check_factor(present: Partition, target: list[int]) -> None:
    settled = len(present.assignment.target_replicas)
    if settled != len(target):
        message = f"The replication factor is changed from {settled} to {len(target)}"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _start(topic: Topic, partition_id: int, present: Partition, target: list[int]) -> _Reassignment:
    started = start_reassignment(present.replicas, tuple(target))
    return _Reassignment(
        topic=topic,
        partition_id=partition_id,
        present=present,
        replicas=started.replicas,
        isr=present.isr,
        # Sets that would be empty leave those of the reassignment before as they are.
        adding=started.adding or present.adding_replicas,
        removing=started.removing or present.removing_replicas,
        election=ELECT_ONLINE,
    )


def _cancel(
    image: MetadataImage, config: ControllerConfig, topic: Topic, partition_id: int, present: Partition
) -> _Reassignment:
    """``revert_reassignment``; uncleanly only where the topic allows it."""
    if not present.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    reverted = revert_reassignment(present.assignment, present.isr)
    allows_unclean = allows_unclean_election(image, config, topic.name)
    if reverted.is_unclean and not allows_unclean:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{partition_id} because it would require an "
            "unclean leader election.",
        )
    election = ELECT_UNCLEAN if allows_unclean else ELECT_ONLINE
    return _Reassignment(topic, partition_id, present, reverted.replicas, reverted.isr, (), (), election)


# --- to columns --------------------------------------------------------------------------------------


def _runs(image: MetadataImage, config: ControllerConfig, changes: list[_Reassignment]) -> list[PartitionChangeRun]:
    """Records of the changes, through the same rules as everything else."""
    layout = _TargetLayout(image, changes)
    present = [change.present for change in changes]
    rows = PartitionRows(
        replicas=layout.masks([p.replicas for p in present]),
        isr=layout.masks([p.isr for p in present]),
        isr_order=layout.orders([p.isr for p in present]),
        removing=layout.masks([p.removing_replicas for p in present]),
        adding=layout.masks([p.adding_replicas for p in present]),
        elr=layout.masks([p.elr for p in present]),
        last_known_elr=layout.masks([p.last_known_elr for p in present]),
        leader=np.array([at.get(p.leader, -1) for at, p in zip(layout.slot_of, present, strict=True)], np.int64),
        is_recovering=np.array([bool(p.leader_recovery_state) for p in present]),
        directories=layout.directories,
        replica_order=layout.orders([p.replicas for p in present]),
    )
    targets = PartitionTargets(
        acceptable=layout.acceptable,
        min_isr=np.array([_min_isr(image, config, change.topic) for change in changes], np.int64),
        election=np.array([change.election for change in changes], np.int64),
        isr=layout.masks([change.isr for change in changes]),
        isr_order=layout.orders([change.isr for change in changes]),
        replicas=layout.masks([change.replicas for change in changes]),
        removing=layout.masks([change.removing for change in changes]),
        adding=layout.masks([change.adding for change in changes]),
        directories=layout.directories,
    )
    names = PartitionNames(
        topic_ids=np.frombuffer(b"".join(change.topic.id for change in changes), np.uint8).reshape(-1, 16),
        partition_ids=np.array([change.partition_id for change in changes], np.int32),
        brokers=layout.brokers,
        leaders=np.array([p.leader for p in present], np.int32),
    )
    version = partition_version(image.features.metadata_version)
    decided = decide_changes(rows, targets, rule_settings(image, config))
    return change_runs(names, decided, layout.directory_ids, version)


def _min_isr(image: MetadataImage, config: ControllerConfig, topic: Topic) -> int:
    first = image.partitions.partition(image.partitions.rows_of(topic.id).start)
    return effective_min_isr(image, config, topic.name, len(first.replicas))


class _TargetLayout:
    """Slots of the partitions: target replicas in order, then whoever else their sets mention."""

    def __init__(self, image: MetadataImage, changes: list[_Reassignment]) -> None:
        slots = [_brokers_of(change) for change in changes]
        self.width = max(map(len, slots))
        self.slot_of = [{broker: slot for slot, broker in enumerate(brokers)} for brokers in slots]
        #: int32[n, w]
        self.brokers = np.full((len(changes), self.width), NO_BROKER, np.int32)
        #: int32[n, w]
        self.directories = np.zeros((len(changes), self.width), np.int32)
        acceptable = []
        registered = image.cluster.brokers
        dictionary = image.partitions.directories
        for row, (change, brokers) in enumerate(zip(changes, slots, strict=True)):
            self.brokers[row, : len(brokers)] = brokers
            present = dict(zip(change.present.replicas, change.present.directories, strict=True))
            may_lead = []
            for slot, broker_id in enumerate(brokers):
                broker = registered.get(broker_id)
                directory = present.get(broker_id) or default_directory(broker)
                dictionary = dictionary.including((directory,))
                self.directories[row, slot] = dictionary.code(directory) or 0  # it is in there, so 0 is its code
                if broker is not None and broker.is_active and broker.has_online(directory):
                    may_lead.append(broker_id)
            acceptable.append(may_lead)
        self.acceptable = self.masks(acceptable)
        #: uint8[d, 16]
        self.directory_ids = dictionary.ids

    def masks(self, sets: list[list[int]] | list[tuple[int, ...]]) -> Masks:
        """Sets of brokers as masks."""
        values = [sum(1 << at[broker] for broker in ids) for at, ids in zip(self.slot_of, sets, strict=True)]
        return np.array(values, np.uint64)

    def orders(self, lists: list[tuple[int, ...]]) -> Orders:
        """Lists of brokers as lists of slots."""
        order = np.full((len(lists), self.width), NO_SLOT, np.uint8)
        for row, (at, ids) in enumerate(zip(self.slot_of, lists, strict=True)):
            order[row, : len(ids)] = [at[broker] for broker in ids]
        return order


def _brokers_of(change: _Reassignment) -> list[int]:
    present = change.present
    mentioned = (*change.replicas, *present.replicas, *present.isr, *present.elr, *present.last_known_elr)
    mentioned += (*present.adding_replicas, *present.removing_replicas)
    if present.has_leader:
        mentioned += (present.leader,)
    return list(dict.fromkeys(mentioned))


# --- listing -----------------------------------------------------------------------------------------


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Partitions whose reassignment is open; unknown topics and partitions are left out. Reads only."""
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {topic.name: set(topic.partition_indexes) for topic in request.topics}
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for row in image.partitions.rows_reassigning().tolist():
        topic = image.topics.by_id[image.partitions.topic_id(row)]
        number = image.partitions.partition_id(row)
        if wanted is not None and number not in wanted.get(topic.name, ()):
            continue
        partition = image.partitions.partition(row)
        topics.setdefault(topic.name, []).append(
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
        )
    found = [OngoingTopicReassignment(name=name, partitions=topics[name]) for name in sorted(topics)]
    return ListPartitionReassignmentsResponse(topics=found)
