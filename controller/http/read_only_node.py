"""The node that answers reads of one image: of an old state of a running controller, or of a file.

What neither image nor log holds is not there: sessions of brokers, who is connected, the voters' positions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.background.checkpoint_writer import TakenCheckpoint
from quorate.controller.background.digest_memory import DigestMemory
from quorate.controller.configs.resources import controller_ids
from quorate.controller.decisions.controller_config import ControllerConfig, TokenConfig
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import OsRandom, new_uuid
from quorate.controller.engine.purgatory import Reply
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.feed.feed import Chunk, EpochEnd, FeedLimits, MetadataFeed
from quorate.controller.http.ports import Node, NodePosition, Peer, QuorumView, VoterView
from quorate.controller.operations.active_role import ActiveRole, RoleSettings
from quorate.controller.operations.operations import Operations
from quorate.controller.operations.read_only_controller import still_controller
from quorate.controller.reads.broker_reports import HeardBrokers
from quorate.controller.reads.digests import Digests
from quorate.controller.reads.partition_counts import CountedImages
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.past import PastImages
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.errors import NotController
from quorate.snapshots.image.image import MetadataImage

#: No node: ids of nodes begin at 0.
_NOBODY: Final = -1
#: Where Kafka's ``min.insync.replicas`` is set nowhere.
_MIN_ISR_DEFAULT: Final = 1


def node_at(node: Node, image: MetadataImage, leader_id: int | None) -> Node:
    """A node that answers reads as this one would if its committed state were the image.

    ``leader_id``: of the image's epoch, by the log; None: not known.
    """
    controller = still_controller(image, node.node_id)
    return replace(
        node,
        controller=controller,
        operations=node.operations.over(controller),
        cluster=_StillCluster(image, leader_id),
        heard=_nobody_heard(controller),
    )


def node_of(image: MetadataImage, cluster_id: str, leader_id: int | None) -> Node:
    """A node that answers reads of an image that is no node's. Defaults that only settings know are Kafka's.

    ``leader_id``: as for ``node_at``.

    Its parts beside those of reads are empty, and for nobody to use.
    """
    controller = still_controller(image, _NOBODY)
    # Tokens can be read wherever there are some; the secret would be needed to make one.
    config = ControllerConfig(_NOBODY, cluster_id, tokens=TokenConfig(b"none"))
    role = ActiveRole(config, RoleSettings(), (), OsRandom(), new_uuid)
    nothing = _NoFiles()
    ids = controller_ids(image, config) - {_NOBODY}
    return Node(
        cluster_id=cluster_id,
        peers={id_: Peer(id_, "") for id_ in ids},
        controller=controller,
        operations=Operations(controller, role),
        cluster=_StillCluster(image, leader_id),
        feed=MetadataFeed(nothing, FeedLimits()),
        checkpoints=nothing,
        checkpoint_taking=nothing,
        past=PastImages(nothing, nothing, lambda: image),
        counts=CountedImages(_MIN_ISR_DEFAULT),
        search=PartitionSearch(config),
        heard=_nobody_heard(controller),
        digests=Digests(nothing, DigestMemory(), Unpaced()),
    )


def _nobody_heard(controller: QuorumController) -> HeardBrokers:
    return HeardBrokers(controller.scheduler.monotonic_ms)


class _StillCluster:
    """``controller.http.ports.Cluster`` at an image."""

    def __init__(self, image: MetadataImage, leader_id: int | None) -> None:
        self._covers = image.provenance
        self._leader_id = leader_id
        self._counters = Counters()

    def quorum(self) -> QuorumView:
        end, epoch = self._covers.end_offset, self._covers.epoch
        no_voters: Mapping[int, VoterView] = MappingProxyType({})
        return QuorumView(
            leader_id=self._leader_id,
            epoch=epoch,
            high_watermark=end,
            log_start_offset=end,
            log_end_offset=end,
            durable_end=end,
            is_voting=False,
            voters=no_voters,
            voted_id=None,
            log_end_epoch=epoch,
            is_past=True,
        )

    def position(self) -> NodePosition:
        return NodePosition(self._leader_id, self._covers.epoch, self._covers.end_offset)

    def faults(self) -> list[str]:
        return []

    def stalled_ms(self) -> float:
        return 0.0

    def counters(self) -> Counters:
        return self._counters

    def refreshed_counters(self) -> Counters:
        return self._counters

    def wall_ms(self) -> float:
        return time.time() * 1000


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

    def read_from(self, offset: int, max_bytes: int) -> Chunk:
        raise NotController(None)

    def manifest(self, checkpoint: CheckpointId) -> CheckpointManifest | None:
        return None

    def read_chunk(self, checkpoint: CheckpointId, position: int, size_max: int) -> CheckpointChunk:
        raise NotController(None)

    def take(self, reply: Reply[TakenCheckpoint]) -> None:
        raise NotController(None)
