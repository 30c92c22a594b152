"""Remains of deleted topics on the brokers of this process, reported as a broker with data would.

A rehearsal: no data are deleted. A replica of a deleted topic counts as gone at once, unless it lay in a log directory
that had failed: then it stays until that directory is registered again (Kafka's brokers delete such strays at their
next start).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from quorate.broker.publisher import Manifest, MetadataPublisher
from quorate.controller.protocol import UNDELETED_TOPICS_MAX, UndeletedReplicas, UndeletedTopic
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.online_replicas import online_replicas
from quorate.snapshots.table.cluster import BrokerRegistration, ClusterImage

_NOTHING: Final = -1


@dataclass(slots=True)
class _Undeleted:
    """The replicas that one broker has left of one topic."""

    name: str
    #: Partition -> the directory it lies in.
    directories: dict[int, Uuid] = field(default_factory=dict)


class RehearsalDeletions(MetadataPublisher):
    """See the module. ``hosted``: the brokers of this process."""

    wants_every_offset = True  # a heartbeat says up to where

    def __init__(self, hosted: Callable[[], frozenset[int]]) -> None:
        self._hosted = hosted
        #: Last offset of the newest image; -1 = none has been published.
        self._offset = _NOTHING
        self._cluster = ClusterImage()
        #: Broker -> topic -> what is left of it.
        self._left: defaultdict[int, dict[Uuid, _Undeleted]] = defaultdict(dict)

    @property
    def name(self) -> str:
        return "replica-deletions"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if delta.topics.removed:
            self._keep_what_cannot_go(delta)
        if image.cluster is not self._cluster:
            self._cluster = image.cluster
            for broker_id in list(self._left):
                self._retry(broker_id, image.cluster.brokers.get(broker_id))
        self._offset = image.provenance.last_contained_offset

    def said_by(self, broker_id: int) -> UndeletedReplicas | None:
        """The replicas that this broker names in its heartbeat; None = nothing, for it knows nothing yet or has too
        much to say.
        """
        topics = self._left.get(broker_id, {})
        if self._offset == _NOTHING or len(topics) > UNDELETED_TOPICS_MAX:
            return None
        return UndeletedReplicas(
            metadata_offset=self._offset,
            topics=[
                UndeletedTopic(topic_id=topic_id, name=kept.name, ineligible=sorted(kept.directories))
                for topic_id, kept in topics.items()
            ],
        )

    def _keep_what_cannot_go(self, delta: MetadataDelta) -> None:
        old = delta.old
        columns = old.partitions.gather(delta.partitions.removed_rows)
        stuck = columns.replicas & columns.slots_in(sorted(self._hosted())) & ~online_replicas(old, columns)
        for at in np.flatnonzero(stuck).tolist():
            row = int(columns.rows[at])
            partition, topic_id = old.partitions.partition(row), old.partitions.topic_id(row)
            for slot, (broker_id, directory) in enumerate(zip(partition.replicas, partition.directories, strict=True)):
                if int(stuck[at]) >> slot & 1:
                    kept = self._left[broker_id].setdefault(topic_id, _Undeleted(old.topics.by_id[topic_id].name))
                    kept.directories[int(columns.partition_ids[at])] = directory

    def _retry(self, broker_id: int, broker: BrokerRegistration | None) -> None:
        """A registration may have changed: what lies in a directory that is online can go."""
        if broker is None:
            return
        for topic_id, kept in list(self._left[broker_id].items()):
            kept.directories = {
                partition: directory
                for partition, directory in kept.directories.items()
                if not broker.has_online(directory)
            }
            if not kept.directories:
                del self._left[broker_id][topic_id]
        if not self._left[broker_id]:
            del self._left[broker_id]
