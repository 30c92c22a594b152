"""The registered brokers as columns, made once for each version of them: decisions about partitions all need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.online_replicas import OnlineDirectories
from quorate.snapshots.table.cluster import ClusterImage
from quorate.snapshots.table.directories import DirectoryDictionary


@dataclass(frozen=True, slots=True)
class BrokerColumns:
    """The brokers as columns: which may lead, and whose directories are online."""

    #: int32[a], ascending: brokers that are active; int64[a], their epochs.
    active_ids: NDArray[np.int32]
    active_epochs: NDArray[np.int64]
    online: OnlineDirectories

    def active_with(self, to_add: int | None, to_remove: int | None) -> NDArray[np.int32]:
        """int32[n], ascending: the active brokers, one more and one less."""
        ids = self.active_ids
        if to_add is not None:
            ids = np.union1d(ids, np.array([to_add], np.int32))
        return ids if to_remove is None else ids[ids != to_remove]


class _NewestColumns:
    """The columns that were asked for last. A memo only: answers do not depend on it."""

    def __init__(self) -> None:
        self._made: tuple[ClusterImage, DirectoryDictionary, BrokerColumns] | None = None

    def of(self, image: MetadataImage) -> BrokerColumns:
        made = self._made
        cluster, directories = image.cluster, image.partitions.directories
        if made is None or made[0] is not cluster or made[1] is not directories:
            made = self._made = cluster, directories, _columns(image)
        return made[2]


_NEWEST: Final = _NewestColumns()


def broker_columns(image: MetadataImage) -> BrokerColumns:
    """Those of the image."""
    return _NEWEST.of(image)


def _columns(image: MetadataImage) -> BrokerColumns:
    active = sorted((broker.id, broker.epoch) for broker in image.cluster.brokers.values() if broker.is_active)
    return BrokerColumns(
        active_ids=np.array([broker_id for broker_id, _ in active], np.int32),
        active_epochs=np.array([epoch for _, epoch in active], np.int64),
        online=OnlineDirectories(image),
    )
