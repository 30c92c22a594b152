"""Finds metadata that a lower feature level cannot hold, so that they are known before a downgrade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.metadata_version import (
    CONTROLLER_REGISTRATION_LEVEL,
    CORDONED_DIRECTORIES_LEVEL,
    DELEGATION_TOKENS_LEVEL,
    DIRECTORIES_LEVEL,
    ELR_FEATURE,
    ELR_LEVEL,
    METADATA_VERSION_FEATURE,
    SCRAM_LEVEL,
)
from quorate.controller.protocol.features import FeatureLoss
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.directories import UNASSIGNED_CODE
from quorate.snapshots.table.pages import NO_LEADER_SLOT, NO_PARTITION, Page


def losses_of(image: MetadataImage, feature: str, level: int) -> list[FeatureLoss]:
    """The losses with a feature at a lower level than it has. Looks at every partition."""
    if feature == ELR_FEATURE:
        found = _ELR_LOSSES if level < 1 <= (image.features.levels.get(ELR_FEATURE, 0) or 0) else ()
    elif feature == METADATA_VERSION_FEATURE:
        found = tuple(loss for loss in _METADATA_LOSSES if level < loss[0] <= image.features.metadata_version)
    else:
        found = ()  # Their levels are about what clients and brokers may do, not about what the log holds.
    losses = [(at, what, count(image)) for at, what, count in found]
    return [FeatureLoss(feature=feature, level=at - 1, what=what, count=count) for at, what, count in losses if count]


def _partitions(image: MetadataImage, condition: Callable[[Page], NDArray[np.bool_]]) -> int:
    held = ((page.partition_ids != NO_PARTITION) & condition(page) for page in image.partitions.pages)
    return sum(int(np.count_nonzero(rows)) for rows in held)


def _has_eligible(page: Page) -> NDArray[np.bool_]:
    return np.not_equal(page.elr | page.last_known_elr, 0)


def _eligible(image: MetadataImage) -> int:
    return _partitions(image, _has_eligible)


def _waiting(image: MetadataImage) -> int:
    return _partitions(image, lambda page: _has_eligible(page) & (page.leader_slots == NO_LEADER_SLOT))


def _with_directories(image: MetadataImage) -> int:
    return _partitions(image, lambda page: np.any(page.directories > UNASSIGNED_CODE, axis=0))


_Loss = tuple[int, str, Callable[[MetadataImage], int]]
#: The level that brought it, what it is, and how much of it there is.
_METADATA_LOSSES: Final[tuple[_Loss, ...]] = (
    (CORDONED_DIRECTORIES_LEVEL, "brokers with cordoned log directories",
     lambda image: sum(bool(broker.cordoned_directories) for broker in image.cluster.brokers.values())),
    (ELR_LEVEL, "partitions with eligible or last known leader replicas", _eligible),
    (DIRECTORIES_LEVEL, "partitions whose replicas' log directories are known", _with_directories),
    (CONTROLLER_REGISTRATION_LEVEL, "registered controllers", lambda image: len(image.cluster.controllers)),
    (DELEGATION_TOKENS_LEVEL, "delegation tokens", lambda image: len(image.delegation_tokens.tokens)),
    (SCRAM_LEVEL, "SCRAM credentials", lambda image: len(image.scram.credentials)),
)  # fmt: skip
_ELR_LOSSES: Final[tuple[_Loss, ...]] = (
    (1, "partitions with eligible or last known leader replicas, which are forgotten", _eligible),
    (1, "of them without a leader, which can then come back by an unclean election only", _waiting),
)
