"""The brokers whose replicas are missing, and why each is: counted over columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.api.answers.explain_models import CauseCode, ExplainedCause
from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.columns import slots_of
from quorate.controller.partitions.rules import RuleSettings, entitled_leaders, last_known_leaders
from quorate.metadata_log.ids import NO_LEADER
from quorate.snapshots.counts.cells import Cells
from quorate.snapshots.counts.tally import TableTally
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition_columns import Masks, PartitionColumns

#: In this order: a broker that is down has no directory online that counts.
_CODES: Final[tuple[CauseCode, ...]] = (
    "BROKER_UNKNOWN",
    "BROKER_DOWN",
    "BROKER_LEAVING",
    "DIRECTORY_OFFLINE",
    "NOT_CAUGHT_UP",
)
#: Broker and directory.
_KEYS: Final = 2
#: Causes that began when the broker came to be away.
ABSENT: Final[frozenset[CauseCode]] = frozenset({"BROKER_UNKNOWN", "BROKER_DOWN", "BROKER_LEAVING"})


def missing_leaders(columns: PartitionColumns, settings: RuleSettings) -> Masks:
    """uint64[n]: of partitions without a leader, the slots of those whom the election waits for.

    Whom its rules entitle; where they entitle nobody, any replica: one may lead uncleanly.
    """
    entitled = entitled_leaders(columns.isr, columns.elr) & columns.replicas
    known = last_known_leaders(columns.isr, columns.elr, columns.last_known_elr, settings)
    known &= ~columns.slots_in([NO_LEADER])
    return np.where(entitled != 0, entitled, np.where(known != 0, known, columns.replicas))


def missing_in(columns: PartitionColumns, missing: Masks) -> Cells:
    """The slots in ``missing``, counted by broker and directory."""
    chosen = slots_of(missing, columns.width) & (columns.slots >= 0)
    return Cells.of((columns.slots[chosen], columns.directories[chosen]))


def missing_cells(tally: TableTally, where: NDArray[np.bool_]) -> Cells:
    """Replicas in cells of a tally, by broker and directory. ``where``: bool[c], which cells."""
    brokers, directories, _, _ = tally.replicas.keys
    cells = Cells((brokers[where], directories[where]), tally.replicas.counts[where])
    return Cells.total([(cells, 1), (Cells.none(_KEYS), 1)], _KEYS)


def causes_of(image: MetadataImage, missing: Cells, since_ms: Mapping[int, int]) -> list[ExplainedCause]:
    """For each broker that misses something why it does, and how much; most of it first.

    Args:
        missing: slots of partitions, by broker and directory.
        since_ms: when each broker that is absent came to be so, where that is known, in milliseconds since 1970.
    """
    brokers, (ids, directories) = image.cluster.brokers, missing.keys
    fenced = [one.id for one in brokers.values() if one.is_fenced]
    leaving = [one.id for one in brokers.values() if not one.is_fenced and one.in_controlled_shutdown]
    is_online = broker_columns(image).online.are_online(ids, directories)
    # The first that holds, by its place in ``_CODES``.
    reasons = np.select(
        [~_among(ids, list(brokers)), _among(ids, fenced), _among(ids, leaving), ~is_online],
        [0, 1, 2, 3],
        default=4,
    )
    found = Counter[tuple[int, int]]()
    for kind, broker, count in zip(reasons.tolist(), ids.tolist(), missing.counts.tolist(), strict=True):
        found[kind, broker] += count
    causes = [
        ExplainedCause(
            code=(code := _CODES[kind]),
            broker=broker,
            partitions=count,
            since_ms=since_ms.get(broker) if code in ABSENT else None,
        )
        for (kind, broker), count in sorted(found.items())
    ]
    return sorted(causes, key=lambda cause: (-cause.partitions, cause.broker))


def _among(ids: NDArray[np.int64], chosen: list[int]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.isin(ids, np.array(chosen, np.int64))
    return found
