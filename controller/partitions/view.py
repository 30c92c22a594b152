"""Rows of the partition table as the rules want them: who may lead, which settings hold for the topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.controller.configs.topic_configs import MIN_ISR_CONFIG, UNCLEAN_CONFIG
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.metadata_version import partition_version
from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.columns import (
    ELECT_ONLINE,
    ELECT_UNCLEAN,
    Flags,
    Masks,
    PartitionChanges,
    PartitionRows,
    Slots,
)
from quorate.controller.partitions.rules import RuleSettings
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.records.config_texts import as_whole, is_true
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.partition_columns import PartitionColumns


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Some partitions with all that the rules need to know about them."""

    columns: PartitionColumns
    rows: PartitionRows
    #: Replicas that may lead.
    acceptable: Masks
    #: Effective ``min.insync.replicas``.
    min_isr: Slots
    #: Whether the topic allows unclean elections.
    allows_unclean: Flags

    @property
    def election(self) -> Slots:
        """int64[n]: ELECT_UNCLEAN where the topic allows it."""
        return np.where(self.allows_unclean, ELECT_UNCLEAN, ELECT_ONLINE)


def rule_settings(image: MetadataImage, config: ControllerConfig) -> RuleSettings:
    """The settings that are the same for every partition of the image."""
    features = image.features
    return RuleSettings(features.metadata_version, features.is_elr_enabled, config.elects_last_known_leader)


def view_partitions(
    image: MetadataImage,
    config: ControllerConfig,
    rows: NDArray[np.int64] | Sequence[int],
    *,
    broker_to_add: int | None = None,
    broker_to_remove: int | None = None,
) -> PartitionView:
    """The partitions in some rows of the image's table.

    Args:
        broker_to_add: is about to become active: it may lead.
        broker_to_remove: is about to go: it may not.
    """
    columns = image.partitions.gather(rows)
    return view_columns(image, config, columns, broker_to_add=broker_to_add, broker_to_remove=broker_to_remove)


def view_columns(
    image: MetadataImage,
    config: ControllerConfig,
    columns: PartitionColumns,
    *,
    broker_to_add: int | None = None,
    broker_to_remove: int | None = None,
) -> PartitionView:
    """``view_partitions`` of columns of the image's table that are at hand."""
    brokers = broker_columns(image)
    min_isr, allows_unclean = _topic_settings(image, config, columns)
    return PartitionView(
        columns=columns,
        rows=_rule_rows(columns),
        acceptable=columns.slots_in(brokers.active_with(broker_to_add, broker_to_remove))
        & brokers.online.replicas(columns),
        min_isr=min_isr,
        allows_unclean=allows_unclean,
    )


def view_runs(
    image: MetadataImage, view: PartitionView, changes: PartitionChanges, kinds: NDArray[np.int64] | None = None
) -> list[PartitionChangeRun]:
    """The records of changes that were decided on a view; ``kinds``: see ``change_runs``."""
    columns = view.columns
    names = PartitionNames(columns.topic_ids, columns.partition_ids, columns.slots, columns.leaders)
    version = partition_version(image.features.metadata_version)
    return change_runs(names, changes, image.partitions.directories.ids, version, kinds)


def _rule_rows(columns: PartitionColumns) -> PartitionRows:
    return PartitionRows(
        replicas=columns.replicas,
        isr=columns.isr,
        isr_order=columns.isr_order,
        removing=columns.removing,
        adding=columns.adding,
        elr=columns.elr,
        last_known_elr=columns.last_known_elr,
        leader=columns.leader_slots,
        is_recovering=columns.recovery_states.astype(np.bool_),
        directories=columns.directories,
    )


def _topic_settings(image: MetadataImage, config: ControllerConfig, columns: PartitionColumns) -> tuple[Slots, Flags]:
    """Effective min ISR and whether unclean elections are allowed, by row; looked up once per stretch of a topic."""
    stretches = TopicStretches.of(columns.topic_ids)
    # Most topics have no configs of their own: then what holds for a topic that does not exist holds for them.
    min_isr = np.full(len(stretches), min_insync_replicas(image, config, ""), np.int64)
    allows = np.full(len(stretches), allows_unclean_election(image, config, ""), np.bool_)
    for place, name in _configured(image, stretches):
        min_isr[place] = min_insync_replicas(image, config, name)
        allows[place] = allows_unclean_election(image, config, name)
    # The topic's first partition says how many replicas it has: partitions lie in the order of their numbers.
    first_rows = columns.rows[stretches.starts] - columns.partition_ids[stretches.starts]
    counts = image.partitions.column(first_rows, "replica_counts")
    effective = np.minimum(min_isr, counts)
    return np.repeat(effective, stretches.lengths), np.repeat(allows, stretches.lengths)


def _configured(image: MetadataImage, stretches: TopicStretches) -> Iterator[tuple[int, str]]:
    """The stretches whose topic has configs of its own, and its name."""
    resources = image.configs.resources
    if len(resources) < len(stretches):
        names = [name for kind, name in resources if kind == TOPIC_RESOURCE]
        topics = {topic.id: topic.name for topic in map(image.topics.by_name.get, names) if topic is not None}
        if topics:
            yield from (
                (place, topics[topic_id]) for place, topic_id in enumerate(stretches.topics) if topic_id in topics
            )
        return
    for place, topic in enumerate(image.topics.by_id.get_many(stretches.topics)):
        if topic is not None and (TOPIC_RESOURCE, topic.name) in resources:
            yield place, topic.name


def min_insync_replicas(image: MetadataImage, config: ControllerConfig, topic: str) -> int:
    """The topic's ``min.insync.replicas`` as resolved, not yet bounded by its replication factor.

    Controllers do not check values of brokers' configs. One that is no number counts as none, and the next place that
    says something holds: a typing error must not end elections, as it does in Kafka.
    """
    for value in image.configs.topic_values(topic, MIN_ISR_CONFIG, config.node_id):
        number = as_whole(value.strip())
        if number is not None:
            return number
    return int(config.static_configs.get(MIN_ISR_CONFIG, "1"))


def allows_unclean_election(image: MetadataImage, config: ControllerConfig, topic: str) -> bool:
    """The topic's ``unclean.leader.election.enable`` as resolved."""
    value = image.configs.topic_value(topic, UNCLEAN_CONFIG, config.node_id)
    if value is None:
        value = config.static_configs.get(UNCLEAN_CONFIG, "false")
    return is_true(value)


def effective_min_isr(image: MetadataImage, config: ControllerConfig, topic: str, replication_factor: int) -> int:
    """``min.insync.replicas`` that can be met: at most the replication factor of the topic's first partition."""
    return min(min_insync_replicas(image, config, topic), replication_factor)
