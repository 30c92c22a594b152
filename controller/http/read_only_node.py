"""The node that answers reads of one image: an old state of a running controller.

That of a file: ``controller.process.image_node``.

What neither image nor log holds is not there: sessions of brokers, who is connected, the voters' positions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http.ports import Node, NodePosition, QuorumView, VoterView
from quorate.controller.operations.read_only_controller import still_controller
from quorate.controller.reads.broker_reports import BrokerReports
from quorate.snapshots.image.image import MetadataImage


def node_at(node: Node, image: MetadataImage, leader_id: int | None) -> Node:
    """A node that answers reads as this one would if its committed state were the image.

    ``leader_id``: of the image's epoch, by the log; None: not known.
    """
    controller = still_controller(image, node.node_id)
    return replace(
        node,
        controller=controller,
        operations=node.operations.over(controller),
        cluster=ReadOnlyCluster(image, leader_id),
        broker_reports=no_broker_reports(controller),
    )


def no_broker_reports(controller: QuorumController) -> BrokerReports:
    """The brokers' reports where no broker speaks: empty."""
    return BrokerReports(controller.scheduler.monotonic_ms)


class ReadOnlyCluster:
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
