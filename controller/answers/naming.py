"""Rows of the partition table under the names that people know."""

from __future__ import annotations

import numpy as np

from quorate.controller.api.answers.stop_models import AnsweredPartitions
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import Rows


def named_rows(image: MetadataImage, rows: Rows, limit: int) -> list[AnsweredPartitions]:
    """At most ``limit`` of the partitions in these rows, by topic and number.

    Which ones, where there are more, is said by the table's order and not by names: to sort those of a large cluster
    takes longer than the answer.
    """
    some = rows[:limit]
    if not len(some):
        return []
    numbers = image.partitions.gather_partition_ids(some)
    stretches = TopicStretches.of(image.partitions.column(some, "topic_ids"))
    parts = np.split(numbers, stretches.starts[1:])
    topics = [image.topics.by_id[topic_id].name for topic_id in stretches.topics]
    found = [
        AnsweredPartitions(topic=topic, partitions=part.tolist()) for topic, part in zip(topics, parts, strict=True)
    ]
    return sorted(found, key=lambda one: one.topic)
