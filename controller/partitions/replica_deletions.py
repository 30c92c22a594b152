"""Replicas of deleted topics: which are gone, which are on their way, which have to wait.

A deleted topic is gone from the image at once; brokers then delete what they hold of it, and say in their heartbeats
what they still have. That is soft state of the active controller: it is never in the log, decides nothing, is lost when
another controller becomes active, and is rebuilt from what brokers report next. (Kafka's ``TopicDeletionManager`` kept
the topic itself until all was gone.) No clock, no I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.protocol.deletions import UNDELETED_TOPICS_MAX, DeletedReplicas, DeletedTopic, UndeletedReplicas
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.table.extents import numbered
from quorate.snapshots.table.pages import NO_PARTITION, Rows
from quorate.snapshots.views.state_names import DELETION_INELIGIBLE, DELETION_STARTED, DELETION_SUCCESSFUL, ReplicaState

#: Replicas of deleted topics that are kept; some tens of bytes each.
REPLICAS_MAX: Final = 100_000
#: A deletion that an earlier controller wrote, and that a broker told of.
_UNKNOWN_OFFSET: Final = -1

_Partitions = frozenset[int]
_NONE: Final[_Partitions] = frozenset()


@dataclass(frozen=True, slots=True)
class DeletionCounts:
    """Kafka's counts of deletions under way."""

    topics: int = 0
    #: Replicas that are not known to be gone.
    replicas: int = 0
    #: Topics with a replica that has to wait.
    ineligible_topics: int = 0
    ineligible_replicas: int = 0


class _Deletion:
    """One deleted topic. All maps are by broker id."""

    __slots__ = ("failed", "left", "name", "offset", "replicas")

    def __init__(self, name: str, offset: int) -> None:
        self.name = name
        #: Of the record that removed the topic.
        self.offset = offset
        #: Partitions of which the broker had a replica.
        self.replicas: dict[int, _Partitions] = {}
        #: Those of them that are not known to be gone; brokers without any are left out.
        self.left: dict[int, _Partitions] = {}
        #: Those of the latter that the broker said it cannot delete.
        self.failed: dict[int, _Partitions] = {}

    def states(self, image: MetadataImage, broker_id: int) -> Iterator[tuple[ReplicaState, _Partitions, str | None]]:
        """States that the broker's replicas are in, the partitions of each, and what it waits for."""
        left = self.left.get(broker_id, _NONE)
        gone = self.replicas[broker_id] - left
        if gone:
            yield DELETION_SUCCESSFUL, gone, None
        if not _is_alive(image, broker_id):
            failed, reason = left, "the broker, which is fenced"
        else:
            failed, reason = self.failed.get(broker_id, _NONE), "the log directory, which failed"
        if left - failed:
            yield DELETION_STARTED, left - failed, None
        if failed:
            yield DELETION_INELIGIBLE, failed, reason


class TopicDeletions:
    """The deletions that one active controller knows of. Owned by the controller's loop thread."""

    def __init__(self) -> None:
        #: In the order in which they were heard of.
        self._deletions: dict[Uuid, _Deletion] = {}
        #: Broker id -> topics of which it has replicas left.
        self._waiting: defaultdict[int, set[Uuid]] = defaultdict(set)
        self._size = 0
        #: Topics that were dropped because there were too many.
        self.forgotten = 0

    # --- what happens --------------------------------------------------------------------------------

    def begin(self, before: MetadataImage, topics: Sequence[Topic], offset: int) -> None:
        """Topics were deleted.

        Args:
            before: the image in which they still are.
            offset: of the last record that removes them.
        """
        kept = _newest(before, topics)
        self.forgotten += len(topics) - len(kept)
        for topic, replicas in _replicas(before, kept):
            deletion = self._deletions[topic.id] = _Deletion(topic.name, offset)
            for broker_id, partitions in replicas.items():
                self._set(topic.id, deletion, broker_id, partitions, _NONE)

    def report(self, image: MetadataImage, broker_id: int, said: UndeletedReplicas) -> None:
        """A broker said what it still has. Deletions that it has not heard of yet stay as they are."""
        by_id = {one.topic_id: one for one in said.topics}
        for topic_id in sorted({*by_id, *self._waiting.get(broker_id, ())}):
            one = by_id.get(topic_id)
            deletion = self._deletions.get(topic_id)
            if deletion is None:
                if one is None or topic_id in image.topics.by_id:
                    continue
                deletion = self._deletions[topic_id] = _Deletion(one.name, _UNKNOWN_OFFSET)
            if said.metadata_offset >= deletion.offset:
                failed = _NONE if one is None else frozenset(one.ineligible)
                left = failed if one is None else failed.union(one.deleting)
                self._set(topic_id, deletion, broker_id, left, failed)

    def waits_for(self, broker_id: int) -> bool:
        """Whether the broker is to say that something is gone."""
        return bool(self._waiting.get(broker_id))

    def forget_broker(self, broker_id: int) -> None:
        """A broker was unregistered: nobody waits for what it held."""
        for topic_id in sorted(self._waiting.get(broker_id, ())):
            self._set(topic_id, self._deletions[topic_id], broker_id, _NONE, _NONE)

    # --- what is shown -------------------------------------------------------------------------------

    def counts(self, image: MetadataImage) -> DeletionCounts:
        """In numbers; ``image``: the committed state, which says who lives."""
        dead = {broker_id for broker_id in self._waiting if not _is_alive(image, broker_id)}
        replicas = ineligible_topics = ineligible = topics = 0
        for deletion in self._committed(image).values():
            waiting = sum(
                len(partitions if broker_id in dead else deletion.failed.get(broker_id, _NONE))
                for broker_id, partitions in deletion.left.items()
            )
            topics += 1
            replicas += sum(map(len, deletion.left.values()))
            ineligible_topics += waiting > 0
            ineligible += waiting
        return DeletionCounts(topics, replicas, ineligible_topics, ineligible)

    def describe(self, image: MetadataImage) -> list[DeletedTopic]:
        """Every topic with the states of its replicas, the oldest deletion first; ``image`` as in ``counts``."""
        return [
            DeletedTopic(
                topic_id=topic_id,
                name=deletion.name,
                offset=None if deletion.offset == _UNKNOWN_OFFSET else deletion.offset,
                replicas=[
                    DeletedReplicas(
                        broker_id=broker_id, state=state, partitions=sorted(partitions), waits_for=waits_for
                    )
                    for broker_id in sorted(deletion.replicas)
                    for state, partitions, waits_for in deletion.states(image, broker_id)
                ],
            )
            for topic_id, deletion in self._committed(image).items()
        ]

    def _committed(self, image: MetadataImage) -> dict[Uuid, _Deletion]:
        end_offset = image.provenance.end_offset
        return {id_: deletion for id_, deletion in self._deletions.items() if deletion.offset < end_offset}

    # --- keeping it ----------------------------------------------------------------------------------

    def _set(self, topic_id: Uuid, deletion: _Deletion, broker_id: int, left: _Partitions, failed: _Partitions) -> None:
        """Set the replicas that a broker has left of a topic, and those it cannot delete; the topic goes with its last
        replica.
        """
        known = deletion.replicas.get(broker_id, _NONE)
        if left - known:
            deletion.replicas[broker_id] = known | left
            self._size += len(left - known)
        for kept, partitions in ((deletion.left, left), (deletion.failed, failed)):
            if partitions:
                kept[broker_id] = partitions
            else:
                kept.pop(broker_id, None)
        if left:
            self._waiting[broker_id].add(topic_id)
        else:
            self._no_longer_waits(broker_id, topic_id)
        if not deletion.left:
            self._drop(topic_id)
        while self._size > REPLICAS_MAX or len(self._deletions) > UNDELETED_TOPICS_MAX:
            self._drop(next(iter(self._deletions)))
            self.forgotten += 1

    def _drop(self, topic_id: Uuid) -> None:
        deletion = self._deletions.pop(topic_id)
        self._size -= sum(map(len, deletion.replicas.values()))
        for broker_id in deletion.left:
            self._no_longer_waits(broker_id, topic_id)

    def _no_longer_waits(self, broker_id: int, topic_id: Uuid) -> None:
        topics = self._waiting.get(broker_id)
        if topics is not None:
            topics.discard(topic_id)
            if not topics:
                del self._waiting[broker_id]


def _is_alive(image: MetadataImage, broker_id: int) -> bool:
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and not broker.is_fenced


def _newest(before: MetadataImage, topics: Sequence[Topic]) -> Sequence[Topic]:
    """As many of the topics, the last ones, as may be kept at all."""
    newest = topics[-UNDELETED_TOPICS_MAX:]
    rows, owners = _rows(before, newest)
    counts = np.bincount(owners, before.partitions.column(rows, "replica_counts"), len(newest))
    kept = int(np.searchsorted(np.cumsum(counts[::-1]), REPLICAS_MAX, side="right"))
    return newest[len(newest) - kept :]


def _replicas(before: MetadataImage, topics: Sequence[Topic]) -> Iterator[tuple[Topic, dict[int, _Partitions]]]:
    """For each topic its partitions by the brokers that have a replica of them; topics without any are left out."""
    rows, owners = _rows(before, topics)
    columns = before.partitions.gather(rows)
    exists = columns.partition_ids != NO_PARTITION
    held = [exists & (columns.replica_counts > slot) for slot in range(columns.width)]
    owner = np.concatenate([owners[of_slot] for of_slot in held])
    broker = np.concatenate([columns.slots[of_slot, slot] for slot, of_slot in enumerate(held)])
    partition = np.concatenate([columns.partition_ids[of_slot] for of_slot in held])
    order = np.lexsort((broker, owner))
    owner, broker, partition = owner[order], broker[order], partition[order]
    # Where another broker, or another topic, begins.
    starts = np.flatnonzero(np.diff(owner, prepend=-1) | np.diff(broker, prepend=-1)).tolist()
    found: defaultdict[int, dict[int, _Partitions]] = defaultdict(dict)
    for start, end in pairwise([*starts, len(owner)]):
        found[int(owner[start])][int(broker[start])] = frozenset(partition[start:end].tolist())
    return ((topics[at], replicas) for at, replicas in found.items())


def _rows(before: MetadataImage, topics: Sequence[Topic]) -> tuple[Rows, NDArray[np.int64]]:
    """The rows of topics, and for each row which of the topics it belongs to."""
    ranges = [before.partitions.rows_of(topic.id) for topic in topics]
    sizes = np.array([len(rows) for rows in ranges], np.int64)
    starts = np.array([rows.start for rows in ranges], np.int64)
    return numbered(starts, sizes), np.repeat(np.arange(len(topics)), sizes)
