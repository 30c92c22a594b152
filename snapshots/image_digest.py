"""Digests of images: whole ones in bulk, successors of a digested one by what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.records.records import ControlRecord, DataRecord, KRaftVersionRecord, TopicRecord
from quorate.snapshots.checkpoints.as_records import (
    broker_record,
    config_records,
    controller_record,
    feature_record,
    label_records,
    producer_ids_records,
    quota_records,
    zk_records,
)
from quorate.snapshots.digest import DIGEST_BYTES, MODULUS, canonical_value, digest_bytes, entry_leaf
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import KRaftImage
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.pauses import Pause, no_pause, rows_at_once
from quorate.snapshots.table.extents import TOPICS_AT_ONCE, each_once, extent_column, id_column, uuids
from quorate.snapshots.table.page_access import used_stretches
from quorate.snapshots.table.pages import NO_PARTITION
from quorate.snapshots.table.table_difference import changed_topics
from quorate.snapshots.table.table_values import partition_values

K = TypeVar("K")
V = TypeVar("V")
_Records = Iterable[DataRecord | ControlRecord]


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


def digest_image(image: MetadataImage, earlier: ImageDigest = EMPTY_DIGEST, pause: Pause = no_pause) -> ImageDigest:
    """The digest of an image.

    Args:
        image: outside of any transaction.
        earlier: of any image; the nearer a relative, the cheaper.
        pause: called after every millisecond or two of work.
    """
    others = earlier.others
    for change in _changes(earlier.image, image):
        others += change
        pause()
    return ImageDigest(image, _topics(earlier, image, pause) % MODULUS, others % MODULUS)


def _changes(old: MetadataImage, new: MetadataImage) -> Iterator[int]:
    """The amounts that each part but the topics adds to the root."""
    yield from _map_changes(old.features.levels, new.features.levels, lambda name, level: [feature_record(name, level)])
    yield from _map_changes(old.cluster.brokers, new.cluster.brokers, lambda _, broker: [broker_record(broker)])
    yield from _map_changes(
        old.cluster.controllers, new.cluster.controllers, lambda _, controller: [controller_record(controller)]
    )
    yield from _map_changes(old.configs.resources, new.configs.resources, config_records)
    yield from _map_changes(old.labels.resources, new.labels.resources, label_records)
    yield from _map_changes(old.client_quotas.entities, new.client_quotas.entities, quota_records)
    yield from _map_changes(old.acls.entries, new.acls.entries, lambda _, entry: [entry])
    yield from _map_changes(old.scram.credentials, new.scram.credentials, lambda _, credential: [credential])
    yield from _map_changes(old.delegation_tokens.tokens, new.delegation_tokens.tokens, lambda _, token: [token])
    yield _leaves(producer_ids_records(new.producer_ids)) - _leaves(producer_ids_records(old.producer_ids))
    yield _leaves(zk_records(new.features)) - _leaves(zk_records(old.features))
    yield _leaves(_kraft_records(new.kraft)) - _leaves(_kraft_records(old.kraft))


def _map_changes(
    old: PersistentMap[K, V], new: PersistentMap[K, V], records_of: Callable[[K, V], _Records]
) -> Iterator[int]:
    updated, removed = new.changes_since(old)
    yield from (_leaves(records_of(key, new[key])) for key in updated)
    yield from (-_leaves(records_of(key, old[key])) for key in chain(updated, removed) if key in old)


def _leaves(records: _Records) -> int:
    return sum(entry_leaf(record) for record in records)


def _kraft_records(kraft: KRaftImage) -> _Records:
    if kraft.version:
        yield KRaftVersionRecord(kraft.version)
    if kraft.voters is not None:
        yield kraft.voters


# --- topics ------------------------------------------------------------------------------------------


def _topics(earlier: ImageDigest, new: MetadataImage, pause: Pause) -> int:
    """The sum of the leaves of all topics.

    Nothing here is a list or a set as long as there are topics: the cycle collector would look at each object in it
    while it is young, on whichever thread it comes to its turn, the loop's too. It looks into no array.
    """
    old = earlier.image
    if not len(old.topics):
        return _topic_leaves(new, id_column(new.topics.by_id, pause), pause)
    changed_ids = chain.from_iterable(new.topics.by_id.changes_since(old.topics.by_id))
    ids = each_once(
        np.concatenate([id_column(changed_ids, pause), changed_topics(old.partitions, new.partitions, pause)])
    )
    changed, replaced = (ids[_are_known(image, ids, pause)] for image in (new, old))
    if len(changed) + len(replaced) >= len(new.topics):
        return _topic_leaves(new, id_column(new.topics.by_id, pause), pause)
    return earlier.topics + _topic_leaves(new, changed, pause) - _topic_leaves(old, replaced, pause)


def _are_known(image: MetadataImage, ids: NDArray[np.uint8], pause: Pause) -> NDArray[np.bool_]:
    """bool[n]: whether the image has these topics (uint8[n, 16])."""
    topics, are_known = image.topics.by_id, np.empty(len(ids), np.bool_)
    for part in _parts(len(ids), TOPICS_AT_ONCE):
        are_known[part] = [topic in topics for topic in uuids(ids[part])]
        pause()
    return are_known


def _topic_leaves(image: MetadataImage, ids: NDArray[np.uint8], pause: Pause) -> int:
    """The sum of the leaves of some topics (uint8[n, 16]), each given once."""
    table = image.partitions
    extents = np.zeros((len(ids), 2), np.int64)
    for part in _parts(len(ids), TOPICS_AT_ONCE):
        extents[part] = extent_column(table.extents.get_many(uuids(ids[part])))
        pause()
    # As their rows lie: whose rows come after each other are in one page.
    order = np.argsort(extents[:, 0], kind="stable")
    ids, extents = ids[order], extents[order]
    together = _together(extents[:, 1], rows_at_once(pause))
    return sum(_leaves_of_neighbours(image, ids[some], extents[some], pause) for some in together)


def _together(sizes: NDArray[np.int64], rows_max: int) -> Iterator[slice]:
    """Stretches of topics that have so many rows at most, or of one topic that has more; none counts as one row."""
    ends = np.cumsum(np.maximum(sizes, 1))
    first = 0
    while first < len(ends):
        row = int(ends[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(ends, row + rows_max, side="right")))
        yield slice(first, end)
        first = end


def _leaves_of_neighbours(
    image: MetadataImage, ids: NDArray[np.uint8], extents: NDArray[np.int64], pause: Pause
) -> int:
    """The sum of the leaves of topics (uint8[n, 16]) whose rows (int64[n, 2]) ascend."""
    table, hashes = image.partitions, list[blake2b]()
    for part in _parts(len(ids), TOPICS_AT_ONCE):
        for topic in uuids(ids[part]):
            head = canonical_value(TopicRecord(image.topics.by_id[topic].name, topic))
            hashes.append(blake2b(head, digest_size=DIGEST_BYTES))
        pause()
    has_empty_rows = table.reserved_rows != table.partition_count
    topic_of = np.arange(len(extents))
    if has_empty_rows:
        extents, topic_of = used_stretches(table.pages, extents)
    # All rows of these topics are thought of as one sequence; where in it each topic begins.
    begins = np.cumsum(extents[:, 1]) - extents[:, 1]
    for part in _parts(int(extents[:, 1].sum()), rows_at_once(pause)):
        places = np.arange(part.start, part.stop)
        at = np.searchsorted(begins, places, side="right") - 1
        rows, owners = extents[at, 0] + (places - begins[at]), topic_of[at]
        if has_empty_rows:
            is_held = table.gather_partition_ids(rows) != NO_PARTITION
            rows, owners = rows[is_held], owners[is_held]
        if len(rows):
            values, ends = partition_values(table, rows)
            for owner, first, end in _stretches(owners, ends):
                hashes[owner].update(values[first:end])
        pause()
    total = 0
    for part in _parts(len(ids), TOPICS_AT_ONCE):
        total += sum(int.from_bytes(state.digest(), "big") for state in hashes[part])
        pause()
    return total


def _parts(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _stretches(owners: NDArray[Any], ends: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """For each stretch of rows of one owner: the owner, and where the stretch's values begin and end."""
    last_rows = np.append(np.flatnonzero(owners[1:] != owners[:-1]), len(owners) - 1)
    stretch_ends = ends[last_rows].tolist()
    stretch_owners = owners[last_rows].tolist()
    first = 0
    for owner, end in zip(stretch_owners, stretch_ends, strict=True):
        yield owner, first, end
        first = end
