"""New clusters, and single nodes, that start from a state of another one: a fresh cluster, or a rehearsal.

The state becomes the newest checkpoint, and nothing that lies behind it in the source is taken. The epoch is above
every one that the source knows of.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from quorate.controller.operations.bootstrap import bootstrap_checkpoint, feature_records
from quorate.metadata_log.directory.directory import FormatPlan, format_directory
from quorate.metadata_log.directory.meta_properties import MetaProperties
from quorate.metadata_log.directory.quorum_state import QuorumState
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.ids import ZERO_UUID, Uuid
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.log_content import LogContent, checkpoint_content
from quorate.scripts.cluster.making import (
    Ports,
    controller_directory,
    format_plan,
    make_certificates,
    plan_controllers,
    plan_twin_brokers,
    twin_controller_ids,
)
from quorate.scripts.cluster.new_directories import all_or_nothing
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.cluster.source_state import SourceState, source_quorum_state


@dataclass(frozen=True, slots=True)
class RestoredNode:
    """A single node's new directory."""

    node_id: int
    cluster_id: str
    directory_id: Uuid
    #: With static voters (kraft.version 0) all of them; with dynamic ones nobody.
    static_voters: tuple[int, ...]
    #: False: it joins the others of its cluster, who remember what this directory does not.
    has_vote: bool


def restore_node(source: SourceState, directory: Path, node: RestoredNode) -> None:
    """Make ``directory`` the metadata directory of one node.

    Raises:
        ClusterError: it is there already, or there is no state to restore.
    """
    content, bootstrap = _content(source), _bootstrap(source)
    is_same = node.cluster_id == source.cluster_id
    with all_or_nothing(directory) as making:
        format_directory(
            RealDisk(),
            str(making),
            FormatPlan(
                meta=MetaProperties(
                    node.cluster_id,
                    node.node_id,
                    node.directory_id,
                    None if is_same else source.cluster_id,
                    source.generation if is_same else 0,
                    _replaced(source, node.node_id) if is_same else ZERO_UUID,
                ),
                bootstrap=bootstrap,
                voters=None,
                quorum_state=_voting_state(source, node) if node.has_vote else None,
                imported=content.files,
            ),
        )


def _voting_state(source: SourceState, node: RestoredNode) -> QuorumState:
    return QuorumState(
        leader_epoch=source.next_epoch,
        data_version=0 if node.static_voters else 1,
        current_voters=node.static_voters,
    )


def _replaced(source: SourceState, node_id: int) -> Uuid:
    """The directory of a node that its cluster's settings name, as far as the source tells; zero where it does not."""
    meta, voters = source.meta, source.image.kraft.voters
    if meta is not None and meta.node_id == node_id:
        return meta.directory_id if meta.replaces == ZERO_UUID else meta.replaces
    listed = () if voters is None else voters.voters
    return next((one.voter_directory_id for one in listed if one.voter_id == node_id), ZERO_UUID)


def restore_cluster(
    source_path: Path,
    source: SourceState,
    directory: Path,
    ports: Ports,
    controller_count: int,
    brokers: str,
    cluster_id: str | None,
    *,
    is_secured: bool = False,
) -> ClusterPlan:
    """Make ``directory`` a local cluster (`quorate up --dir`).

    Args:
        brokers: which of the brokers are played: ``live`` (not fenced), ``all`` or ``none``.
        cluster_id: None: a new one.
        is_secured: as for ``make_fresh``.

    Raises:
        ClusterError: it is there already, or there is no state to restore.
    """
    image = source.image
    ids = twin_controller_ids(image, source_quorum_state(source_path), controller_count)
    plan = ClusterPlan(
        cluster_id=cluster_id or new_id(),
        controllers=plan_controllers(ids, ports),
        brokers=plan_twin_brokers(image, brokers, ports),
        kraft_version=image.kraft.version,
        source_cluster_id=None if cluster_id == source.cluster_id else source.cluster_id,
        source=str(source_path.resolve()),
        is_secured=is_secured,
    )
    content, bootstrap = _content(source), _bootstrap(source)
    with all_or_nothing(directory) as making:
        for controller in plan.controllers:
            format_directory(
                RealDisk(),
                str(controller_directory(making, controller)),
                format_plan(
                    plan,
                    controller,
                    bootstrap=bootstrap,
                    epoch=source.next_epoch,
                    imported=content.files,
                    generation=source.generation if plan.source_cluster_id is None else 0,
                ),
            )
        make_certificates(making, plan)
        plan.save(making)
    return plan


def _content(source: SourceState) -> LogContent:
    if source.image.provenance.end_offset == 0:
        raise ClusterError("the state at offset 0 is empty: there is nothing to restore")
    return checkpoint_content(source.image, source.image.provenance.log_time_ms)


def _bootstrap(source: SourceState) -> bytes:
    """For a state from before the cluster had feature levels; a state that has some is not given any."""
    return bootstrap_checkpoint(time.time_ns() // 1_000_000, feature_records(source.image.features) or None)
