"""Digests of images: whole ones in bulk, successors of a digested one by what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from metadata_log.ids import Uuid
from metadata_log.records import ControlRecord, DataRecord, KRaftVersionRecord, TopicRecord
from snapshots.as_records import (
    broker_record,
    config_records,
    controller_record,
    feature_record,
    producer_ids_records,
    quota_records,
    zk_records,
)
from snapshots.digest import DIGEST_BYTES, MODULUS, canonical_value, digest_bytes, entry_leaf
from snapshots.image import EMPTY_IMAGE, MetadataImage
from snapshots.image_parts import KRaftImage
from snapshots.pages import NO_PARTITION, Rows
from snapshots.partition_table import PartitionTable
from snapshots.persistent_map import PersistentMap
from snapshots.table_difference import table_difference
from snapshots.table_values import partition_values

K = TypeVar("K")
V = TypeVar("V")
_Records = Iterable[DataRecord | ControlRecord]

#: Topics that are begun with at a time: some 2 ms of work.
_TOPICS_AT_ONCE: Final = 256
#: Rows whose values are made at a time: some 15 ms of work.
_ROWS_AT_ONCE: Final = 16_384


@dataclass(frozen=True, slots=True)
class ImageDigest:
    """An image and its digest. It keeps the image alive, so that the next one's digest costs what changed."""

    image: MetadataImage
    #: Sums of the leaves of topics and of all other entries.
    topics: int
    others: int

    @property
    def value(self) -> bytes:
        """32 bytes."""
        return digest_bytes((self.topics + self.others) % MODULUS)

    @property
    def text(self) -> str:
        """64 hexadecimal digits."""
        return self.value.hex()


#: Of nothing: what the first digest builds on.
EMPTY_DIGEST: Final = ImageDigest(EMPTY_IMAGE, 0, 0)


def digest_image(
    image: MetadataImage, earlier: ImageDigest = EMPTY_DIGEST, pause: Callable[[], None] = lambda: None
) -> ImageDigest:
    """The digest of an image.

    Args:
        image: outside of any transaction.
        earlier: of any image; the nearer a relative, the cheaper.
        pause: called after every few milliseconds of work on topics.
    """
    others = earlier.others + sum(_changes(earlier.image, image))
    return ImageDigest(image, _topics(earlier, image, pause) % MODULUS, others % MODULUS)


def _changes(old: MetadataImage, new: MetadataImage) -> Iterator[int]:
    """What each part but the topics adds to the root."""
    yield _map_change(old.features.levels, new.features.levels, lambda name, level: [feature_record(name, level)])
    yield _map_change(old.cluster.brokers, new.cluster.brokers, lambda _, broker: [broker_record(broker)])
    yield _map_change(
        old.cluster.controllers, new.cluster.controllers, lambda _, controller: [controller_record(controller)]
    )
    yield _map_change(old.configs.resources, new.configs.resources, config_records)
    yield _map_change(old.client_quotas.entities, new.client_quotas.entities, quota_records)
    yield _map_change(old.acls.entries, new.acls.entries, lambda _, entry: [entry])
    yield _map_change(old.scram.credentials, new.scram.credentials, lambda _, credential: [credential])
    yield _map_change(old.delegation_tokens.tokens, new.delegation_tokens.tokens, lambda _, token: [token])
    yield _leaves(producer_ids_records(new.producer_ids)) - _leaves(producer_ids_records(old.producer_ids))
    yield _leaves(zk_records(new.features)) - _leaves(zk_records(old.features))
    yield _leaves(_kraft_records(new.kraft)) - _leaves(_kraft_records(old.kraft))


def _map_change(old: PersistentMap[K, V], new: PersistentMap[K, V], records_of: Callable[[K, V], _Records]) -> int:
    updated, removed = new.changes_since(old)
    change = sum(_leaves(records_of(key, new[key])) for key in updated)
    replaced = [key for key in (*updated, *removed) if key in old]
    return change - sum(_leaves(records_of(key, old[key])) for key in replaced)


def _leaves(records: _Records) -> int:
    return sum(entry_leaf(record) for record in records)


def _kraft_records(kraft: KRaftImage) -> _Records:
    if kraft.version:
        yield KRaftVersionRecord(kraft.version)
    if kraft.voters is not None:
        yield kraft.voters


# --- topics ------------------------------------------------------------------------------------------


def _topics(earlier: ImageDigest, new: MetadataImage, pause: Callable[[], None]) -> int:
    """The sum of the leaves of all topics."""
    old = earlier.image
    updated, removed = new.topics.by_id.changes_since(old.topics.by_id)
    found = table_difference(old.partitions, new.partitions)
    # Also of a topic that only lost partitions: ``earlier`` may be the later one of two states of a log.
    touched = new.partitions.topics_in(found.rows) | old.partitions.topics_in(found.removed_rows)
    changed = (updated | touched) - removed
    replaced = [topic for topic in (*changed, *removed) if topic in old.topics.by_id]
    if len(changed) + len(replaced) >= len(new.topics):
        return _topic_leaves(new, new.topics.by_id, pause)
    return earlier.topics + _topic_leaves(new, changed, pause) - _topic_leaves(old, replaced, pause)


def _topic_leaves(image: MetadataImage, topics: Iterable[Uuid], pause: Callable[[], None]) -> int:
    """The sum of the leaves of some topics, each given once."""
    table = image.partitions
    ordered = sorted(topics, key=lambda topic: table.rows_of(topic).start)
    hashes = []
    for number, topic in enumerate(ordered):
        head = canonical_value(TopicRecord(image.topics.by_id[topic].name, topic))
        hashes.append(blake2b(head, digest_size=DIGEST_BYTES))
        if number % _TOPICS_AT_ONCE == 0:
            pause()
    rows, owners = _held_rows(table, ordered)
    pause()
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        values, ends = partition_values(table, rows[part])
        for owner, first, end in _stretches(owners[part], ends):
            hashes[owner].update(values[first:end])
        pause()
    return sum(int.from_bytes(state.digest(), "big") for state in hashes)


def _held_rows(table: PartitionTable, topics: list[Uuid]) -> tuple[Rows, NDArray[np.int64]]:
    """Rows of topics that lie in this order, without empty ones, and the position of each row's topic."""
    ranges = [table.rows_of(topic) for topic in topics]
    sizes = np.array([len(rows) for rows in ranges], np.int64)
    rows: Rows = np.concatenate([np.arange(0), *(np.arange(r.start, r.stop) for r in ranges)])
    owners = np.repeat(np.arange(len(topics)), sizes)
    held = table.gather_partition_ids(rows) != NO_PARTITION
    return rows[held], owners[held]


def _stretches(owners: NDArray[Any], ends: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """For each stretch of rows of one owner: the owner, and where the stretch's values begin and end."""
    last_rows = np.append(np.flatnonzero(owners[1:] != owners[:-1]), len(owners) - 1)
    stretch_ends = ends[last_rows].tolist()
    stretch_owners = owners[last_rows].tolist()
    first = 0
    for owner, end in zip(stretch_owners, stretch_ends, strict=True):
        yield owner, first, end
        first = end
