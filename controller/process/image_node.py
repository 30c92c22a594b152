"""The node that answers reads of a file: of an image that is no controller's."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.background.checkpoint_writer import TakenCheckpoint
from quorate.controller.configs.resources import controller_ids
from quorate.controller.engine.environment import OsRandom, new_uuid
from quorate.controller.engine.purgatory import Reply
from quorate.controller.feed.feed import FeedChunk, MetadataFeed
from quorate.controller.http.ports import Node, Peer
from quorate.controller.http.read_only_node import ReadOnlyCluster, no_broker_reports
from quorate.controller.operations.active_role import ActiveRole
from quorate.controller.operations.operations import Operations
from quorate.controller.operations.read_only_controller import still_controller
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.reads.broker_absences import BrokerAbsences
from quorate.controller.reads.digests import StateDigests
from quorate.controller.reads.partition_counts import CountedImages
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.past import PastImages
from quorate.controller.reads.replica_additions import ReplicaAdditions
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.errors import NotController
from quorate.metadata_log.log.log_index import EpochEnd
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import MetadataImage

#: No node: ids of nodes begin at 0.
_NOBODY: Final = -1
_PATIENCE_MS: Final = 600_000


class ToldByLog(BrokerAbsences, ReplicaAdditions, Protocol):
    """The log that led to an image: it tells what no state holds."""


def node_of(image: MetadataImage, cluster_id: str, leader_id: int | None, told: ToldByLog) -> Node:
    """A node that answers reads of an image that is no node's. What only settings know is as by default.

    ``leader_id``: of the image's epoch, by the log; None: not known.

    Its parts beside those of reads are empty, and for nobody to use.
    """
    controller = still_controller(image, _NOBODY)
    parts = default_parts(_NOBODY, cluster_id)
    # Tokens can be read wherever there are some; the secret would be needed to make one.
    config = replace(parts.config, tokens=replace(parts.config.tokens, secrets=lambda: (b"none",)))
    role = ActiveRole(config, parts.role, (), OsRandom(), new_uuid)
    nothing = _NoFiles()
    ids = controller_ids(image, config) - {_NOBODY}
    return Node(
        cluster_id=cluster_id,
        peers={id_: Peer(id_, "") for id_ in ids},
        controller=controller,
        operations=Operations(controller, role),
        cluster=ReadOnlyCluster(image, leader_id),
        feed=MetadataFeed(nothing, parts.feed),
        checkpoints=nothing,
        checkpoint_taking=nothing,
        past=PastImages(nothing, nothing, lambda: (image,), controller.scheduler.wall_ms),
        counts=CountedImages(config),
        search=PartitionSearch(config),
        broker_reports=no_broker_reports(controller),
        digests=StateDigests(nothing, DigestMemory(), Unpaced()),
        # Nobody else waits for these answers: each has all the time of whoever asks.
        limits=replace(parts.api, read_timeout_ms=_PATIENCE_MS),
        config=config,
        absences=told,
        additions=told,
    )


class _NoFiles:
    """``FeedSource``, ``Checkpoints`` and ``CheckpointTaking`` of a node that has neither log nor checkpoint."""

    log_start_offset = 0
    log_end_offset = 0
    high_watermark = 0
    is_authoritative = False
    infos: tuple[CheckpointInfo, ...] = ()
    writing_offset: int | None = None

    def epoch_at(self, offset: int) -> int | None:
        return None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        raise NotController(None)

    def bytes_from(self, offset: int) -> int:
        return 0

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        raise NotController(None)

    def manifest(self, checkpoint: CheckpointId) -> CheckpointManifest | None:
        return None

    def read_chunk(self, checkpoint: CheckpointId, position: int, size_max: int) -> CheckpointChunk:
        raise NotController(None)

    def take(self, reply: Reply[TakenCheckpoint]) -> None:
        raise NotController(None)
