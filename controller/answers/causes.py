"""The brokers whose replicas are missing, and why each is: counted over columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.api.answers.explain_models import CauseCode, ExplainedCause
from quorate.controller.partitions.broker_columns import broker_columns
from quorate.controller.partitions.columns import slots_of
from quorate.controller.partitions.rules import RuleSettings, entitled_leaders, last_known_leaders
from quorate.metadata_log.ids import NO_LEADER
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


def causes_of(
    image: MetadataImage, columns: PartitionColumns, missing: Masks, since_ms: Mapping[int, int]
) -> list[ExplainedCause]:
    """For each broker with slots in ``missing`` why it is, and in how many of the partitions; most of them first.

    ``since_ms``: when each broker that is absent came to be so, where that is known, in milliseconds since 1970.
    """
    brokers = image.cluster.brokers
    online = broker_columns(image).online.replicas(columns)
    is_online = slots_of(online, columns.width)
    is_missing = slots_of(missing, columns.width) & (columns.slots >= 0)
    ids = columns.slots[is_missing]
    fenced = [one.id for one in brokers.values() if one.is_fenced]
    leaving = [one.id for one in brokers.values() if not one.is_fenced and one.in_controlled_shutdown]
    # The first that holds, by its place in ``_CODES``.
    reasons = np.select(
        [~_among(ids, list(brokers)), _among(ids, fenced), _among(ids, leaving), ~is_online[is_missing]],
        [0, 1, 2, 3],
        default=4,
    )
    kinds, counts = np.unique(np.stack([reasons, ids]), axis=1, return_counts=True)
    found = zip(*kinds.tolist(), counts.tolist(), strict=True) if len(ids) else ()
    causes = [
        ExplainedCause(
            code=(code := _CODES[kind]),
            broker=broker,
            partitions=count,
            since_ms=since_ms.get(broker) if code in ABSENT else None,
        )
        for kind, broker, count in found
    ]
    return sorted(causes, key=lambda cause: (-cause.partitions, cause.broker))


def _among(ids: NDArray[np.int32], chosen: list[int]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.isin(ids, np.array(chosen, np.int32))
    return found
