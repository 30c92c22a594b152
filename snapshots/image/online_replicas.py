"""Finds the replicas in a directory that their broker has online, for many partitions at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.directories import LOST_CODE, MIGRATING_CODE, UNASSIGNED_CODE
from quorate.snapshots.table.partition_columns import Masks, PartitionColumns

_ANY_OWNER: Final = -1
_NO_OWNER: Final = -2


class OnlineDirectories:
    """The directories that brokers have online in one image, by their codes."""

    def __init__(self, image: MetadataImage) -> None:
        dictionary = image.partitions.directories
        self._owners = np.full(len(dictionary), _NO_OWNER, np.int32)
        self._owners[[MIGRATING_CODE, UNASSIGNED_CODE]] = _ANY_OWNER
        self._without_directories = []
        for broker in image.cluster.brokers.values():
            if not broker.directories:
                self._without_directories.append(broker.id)
            for directory in broker.directories:
                code = dictionary.code(directory)
                if code is not None:
                    self._owners[code] = broker.id

    def are_online(self, brokers: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: whether directories, by their codes, are online on these brokers, fenced or not."""
        owner = self._owners[codes]
        is_online: NDArray[np.bool_] = (owner == _ANY_OWNER) | (owner == brokers)
        if self._without_directories:
            is_online |= np.isin(brokers, self._without_directories) & (codes != LOST_CODE)
        is_online &= codes >= 0
        return is_online

    def replicas(self, columns: PartitionColumns) -> Masks:
        """uint64[n]: replicas in a directory that is online on their broker, fenced or not (Kafka's ``isOnline``)."""
        online = np.zeros(len(columns), np.uint64)
        for slot in range(columns.width):
            codes, bit = columns.directories[:, slot], np.uint64(1 << slot)
            online |= self.are_online(columns.slots[:, slot], codes) * bit
        return online


def online_replicas(image: MetadataImage, columns: PartitionColumns) -> Masks:
    """uint64[n]: ``OnlineDirectories.replicas`` of partitions of the image."""
    return OnlineDirectories(image).replicas(columns)
