"""Whether partitions have other replicas in a later image: most mass changes are of leaders and of those in sync."""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.directories import UNASSIGNED_CODE
from quorate.snapshots.table.pages import NO_PARTITION, Page, other_pages

#: By these alone a page says which replicas there are; pages share those columns that did not change.
_COLUMNS: Final = ("topic_ids", "partition_ids", "slots", "directories", "replica_counts")


def moves_replicas(before: MetadataImage, after: MetadataImage) -> bool:
    """Whether a partition of both images may have other replicas in the later one, or one of a broker other
    directories. Neither of what is there only in one of them is anything said.
    """
    if before.cluster is not after.cluster and _directories(before) != _directories(after):
        return True
    old, new = before.partitions.pages, after.partitions.pages
    if len(new) < len(old) or not before.partitions.directories.is_continued_by(after.partitions.directories):
        return True  # it was read from a checkpoint: nothing lies where it was, or is called what it was
    changed = (number for number in other_pages(old, new) if number < len(old))
    return any(_moves_in(old[number], new[number], after) for number in changed)


def _directories(image: MetadataImage) -> dict[int, tuple[Uuid, ...]]:
    return {broker.id: broker.directories for broker in image.cluster.brokers.values()}


def _moves_in(old: Page, new: Page, after: MetadataImage) -> bool:
    if all(getattr(old, name) is getattr(new, name) for name in _COLUMNS):
        return False
    if old.width != new.width:
        return True
    was_held = old.partition_ids != NO_PARTITION
    is_there = was_held & (old.partition_ids == new.partition_ids) & (old.topic_ids == new.topic_ids).all(axis=1)
    # Brokers may stay in slots behind the replicas.
    is_other = (old.slots != new.slots).any(axis=0) | (old.replica_counts != new.replica_counts)
    # One that had no directory, or none that is known, did not lie in another one.
    is_other |= ((old.directories != new.directories) & (old.directories > UNASSIGNED_CODE)).any(axis=0)
    if (is_other & is_there).any():
        return True
    gone = np.unique(old.topic_ids[was_held & ~is_there], axis=0)
    # A topic that grows may lie in other rows then.
    return any(topic_id.tobytes() in after.topics.by_id for topic_id in gone)
