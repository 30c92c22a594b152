"""AssignReplicasToDirs: a broker says in which of its log directories replicas lie (KIP-858)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import DIRECTORIES_LEVEL, partition_version
from quorate.controller.partitions.broker_epoch import check_broker_epoch
from quorate.controller.partitions.columns import ELECT_ONLINE, PartitionTargets
from quorate.controller.partitions.elections import leader_and_isr_changes
from quorate.controller.partitions.rules import decide_changes
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.controller.partitions.view import rule_settings, view_partitions
from quorate.controller.protocol import (
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration


@dataclass(frozen=True, slots=True)
class _Asked:
    """n replicas with their directories, in the order of the request."""

    #: int64[n]: rows of the partitions, -1 where there is none.
    rows: NDArray[np.int64]
    directories: list[Uuid]
    #: int16[n], numbers of ErrorCode.
    codes: NDArray[np.int16]


def decide_assign_replicas_to_dirs(
    image: MetadataImage, config: ControllerConfig, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Note the directories, each replica with its own outcome.

    A replica in a directory that is not online on the broker is lost: the broker leaves the ISR as well.

    Raises:
        ApiError: UNSUPPORTED_VERSION, the metadata version knows no directories; STALE_BROKER_EPOCH.
    """
    if image.features.metadata_version < DIRECTORIES_LEVEL:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    asked = _find(image, request)
    known = np.flatnonzero(asked.codes == ErrorCode.NONE)
    runs: list[PartitionChangeRun] = []
    if len(known):
        runs = _changes(image, config, broker, asked, known)
    return Decision(runs, _response(request, asked.codes), is_atomic=False)


def _find(image: MetadataImage, request: AssignReplicasToDirsRequest) -> _Asked:
    """Rows of the partitions; those that do not exist get their code here."""
    named = [
        (directory.id, topic.topic_id, partition.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]
    topic_ids = np.frombuffer(b"".join(topic_id for _, topic_id, _ in named), np.uint8).reshape(-1, 16)
    rows = image.partitions.rows_for(topic_ids, np.array([number for _, _, number in named], np.int32))
    codes = np.zeros(len(named), np.int16)
    for at in np.flatnonzero(rows < 0).tolist():
        has_topic = named[at][1] in image.topics.by_id
        codes[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if has_topic else ErrorCode.UNKNOWN_TOPIC_ID
    return _Asked(rows, [directory for directory, _, _ in named], codes)


def _changes(
    image: MetadataImage,
    config: ControllerConfig,
    broker: BrokerRegistration,
    asked: _Asked,
    known: NDArray[np.intp],
) -> list[PartitionChangeRun]:
    """The records; partitions that the broker does not hold get their code here."""
    view = view_partitions(image, config, asked.rows[known])
    columns = view.columns
    mine = (columns.slots == broker.id) & (np.arange(columns.width) < columns.replica_counts[:, None])
    is_mine = mine.any(axis=1)
    asked.codes[known[~is_mine]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    wanted = [asked.directories[at] for at in known.tolist()]
    dictionary = image.partitions.directories.including(wanted)
    code_of = {directory: dictionary.known_code(directory) for directory in set(wanted)}
    codes = np.array([code_of[directory] for directory in wanted], np.int32)
    targets = PartitionTargets(
        acceptable=view.acceptable,
        min_isr=view.min_isr,
        election=np.full(len(columns), ELECT_ONLINE, np.int64),
        directories=np.where(mine, codes[:, None], columns.directories),
    )
    changes = decide_changes(view.rows, targets, rule_settings(image, config))
    changes.has_change[~is_mine] = False
    names = PartitionNames(columns.topic_ids, columns.partition_ids, columns.slots, columns.leaders)
    version = partition_version(image.features.metadata_version)
    runs = change_runs(names, changes, dictionary.ids, version)
    offline = {directory for directory in set(wanted) if not broker.has_online(directory)}
    is_lost = is_mine & np.array([directory in offline for directory in wanted])
    lost = np.unique(asked.rows[known[is_lost]])
    # On the same image: what is written above changes neither ISR nor leader of what is lost.
    return runs + leader_and_isr_changes(image, config, lost, broker_to_remove=broker.id)


def _response(request: AssignReplicasToDirsRequest, codes: NDArray[np.int16]) -> AssignReplicasToDirsResponse:
    left = iter(codes.tolist())
    return AssignReplicasToDirsResponse(
        directories=[
            AssignedDirectory(
                id=directory.id,
                topics=[
                    AssignedTopic(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignedPartition(
                                partition_index=partition.partition_index, error_code=ErrorCode(next(left))
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
