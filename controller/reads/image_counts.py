"""The counts of an image: sums over the cells that are kept with its table. Partitions are looked at to name some.

Which replicas are offline, and what the cluster's ``min.insync.replicas`` asks for, is decided here, cell by cell: so
nothing is counted again when a broker comes or goes, or when that value changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.api.resources import BrokerPartitionCounts, PartitionCounts, StatesReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.view import min_insync_replicas
from quorate.snapshots.counts.tally import LEADS, NOT_PREFERRED, OFFLINE, REASSIGNING, UNDER_REPLICATED, TableTally
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.page_access import is_leaderless
from quorate.snapshots.table.pages import PAGE_SHIFT
from quorate.snapshots.views.derived_states import count_states

#: Offline partitions that are named, the first ones of the table: enough to begin with.
OFFLINE_NAMED_MAX: Final = 20


class Counted(NamedTuple):
    """The counts of one image."""

    counts: PartitionCounts
    #: "topic-partition" of the first ones without a leader.
    offline: list[str]
    #: Of every broker that has replicas, registered or not, by id.
    brokers: Mapping[int, BrokerPartitionCounts]
    #: Replicas on brokers that are not registered, by their ids.
    unregistered: dict[int, int]
    states: StatesReply

    def of_broker(self, broker_id: int) -> BrokerPartitionCounts:
        """Those of one broker."""
        return self.brokers.get(broker_id) or BrokerPartitionCounts()


def count_image(image: MetadataImage, config: ControllerConfig) -> Counted:
    """The counts of an image."""
    tally = tally_of(image.partitions)
    min_isr = min_insync_replicas(image, config, "")  # where topics have none of their own
    counts, brokers = _of_partitions(tally, min_isr), _of_brokers(image, tally, min_isr)
    states = count_states(image)
    return Counted(
        counts,
        _offline_names(image) if counts.offline else [],
        brokers,
        {id_: found.replicas for id_, found in brokers.items() if id_ not in image.cluster.brokers},
        StatesReply(partitions=dict(states.partitions), replicas=dict(states.replicas)),
    )


def _of_partitions(tally: TableTally, min_isr: int) -> PartitionCounts:
    shapes, counts = tally.shapes, tally.partitions.counts
    above = shapes.above_min_isr(min_isr)

    def number(where: NDArray[np.bool_]) -> int:
        return int(counts[where].sum())

    return PartitionCounts(
        total=int(counts.sum()),
        offline=number(shapes.are(OFFLINE)),
        under_replicated=number(shapes.are(UNDER_REPLICATED)),
        under_min_isr=number(above < 0),
        at_min_isr=number(above == 0),
        without_preferred_leader=number(shapes.are(NOT_PREFERRED)),
        reassigning=number(shapes.are(REASSIGNING)),
    )


def _of_brokers(image: MetadataImage, tally: TableTally, min_isr: int) -> dict[int, BrokerPartitionCounts]:
    brokers, codes, parts, _ = tally.replicas.keys
    shapes, counts = tally.replica_shapes, tally.replicas.counts
    living = [broker.id for broker in image.cluster.brokers.values() if not broker.is_fenced]
    is_online = np.isin(brokers, living) & broker_columns(image).online.are_online(brokers, codes)
    above = shapes.above_min_isr(min_isr)
    # Cells ascend by broker: those of one lie together.
    ids, starts = np.unique(brokers, return_index=True)

    def numbers(where: NDArray[np.bool_]) -> list[int]:
        return np.add.reduceat(np.where(where, counts, 0), starts).tolist() if len(ids) else []

    columns = {
        "replicas": numbers(np.ones(len(counts), np.bool_)),
        "leaders": numbers((parts & LEADS) != 0),
        "offline_replicas": numbers(~is_online),
        "offline": numbers(shapes.are(OFFLINE)),
        "under_replicated": numbers(shapes.are(UNDER_REPLICATED)),
        "under_min_isr": numbers(above < 0),
        "at_min_isr": numbers(above == 0),
    }
    each = zip(*columns.values(), strict=True)
    return {
        id_: BrokerPartitionCounts.model_construct(**dict(zip(columns, of_one, strict=True)))
        for id_, of_one in zip(ids.tolist(), each, strict=True)
    }


def _offline_names(image: MetadataImage) -> list[str]:
    table, names = image.partitions, list[str]()
    for number, page in enumerate(table.pages):
        rows = np.flatnonzero(is_leaderless(page))[: OFFLINE_NAMED_MAX - len(names)] + (number << PAGE_SHIFT)
        names += [f"{image.topics.by_id[table.topic_id(row)].name}-{table.partition_id(row)}" for row in rows.tolist()]
        if len(names) == OFFLINE_NAMED_MAX:
            break
    return names
