"""Which replicas lie in a directory that their broker has online, for many partitions at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from snapshots.directories import LOST_CODE, MIGRATING_CODE, UNASSIGNED_CODE
from snapshots.image import MetadataImage
from snapshots.partition_columns import Masks, PartitionColumns

_ANY_OWNER: Final = -1
_NO_OWNER: Final = -2


def online_replicas(image: MetadataImage, columns: PartitionColumns) -> Masks:
    """Replicas whose directory is online on their broker (Kafka's ``DirectoryId.isOnline``), fenced or not."""
    dictionary = image.partitions.directories
    owners = np.full(len(dictionary), _NO_OWNER, np.int32)
    owners[[MIGRATING_CODE, UNASSIGNED_CODE]] = _ANY_OWNER
    without_directories = []
    for broker in image.cluster.brokers.values():
        if not broker.directories:
            without_directories.append(broker.id)
        for directory in broker.directories:
            code = dictionary.code(directory)
            if code is not None:
                owners[code] = broker.id
    from_before = columns.slots_in(without_directories)
    online = np.zeros(len(columns), np.uint64)
    for slot in range(columns.width):
        codes, bit = columns.directories[:, slot], np.uint64(1 << slot)
        owner = owners[codes]
        is_online = (owner == _ANY_OWNER) | (owner == columns.slots[:, slot])
        if without_directories:
            is_online |= ((from_before & bit) != 0) & (codes != LOST_CODE)
        online |= (is_online & (codes >= 0)) * bit
    return online
