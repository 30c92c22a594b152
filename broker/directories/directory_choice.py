"""Finds a broker's replicas that the metadata place in no log directory yet, and chooses one for each.

Rules: Kafka's ``LogManager.nextLogDirs``, the directory that holds fewest replicas first, and KIP-1066: none that is
cordoned. What lay in a directory that its broker does not have any more is put into another when the broker is started
anew; while it runs, what has failed stays lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.online_replicas import Online, online_places
from quorate.broker.directories.places import Ints
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.directories import MIGRATING_CODE, UNASSIGNED_CODE
from quorate.snapshots.table.pages import PAGE_SHIFT, Page, other_pages

#: A replica: its topic and the number of its partition.
Replica = tuple[Uuid, int]


@dataclass(slots=True, eq=False)
class _Unplaced:
    """Replicas of some brokers in one page that lie in no directory."""

    #: int64[n]: rows within the page.
    rows: Ints
    #: int32[n]: their brokers.
    brokers: NDArray[np.int32]


class UnplacedReplicas:
    """Replicas of some brokers that lie in no directory; of another image only what is new is looked at."""

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._registered: dict[int, BrokerRegistration] = {}
        self._begun_anew: frozenset[int] = frozenset()
        self._online: Online = online_places(EMPTY_IMAGE, ())
        #: Those that were looked at, and what was found in those of them that have any.
        self._seen: tuple[Page, ...] = ()
        self._pages: dict[int, _Unplaced] = {}

    def update(self, image: MetadataImage, brokers: Collection[int], begun_anew: frozenset[int]) -> None:
        """Look at another image.

        Args:
            brokers: whose replicas are looked for. One that registered no directories has none to say.
            begun_anew: of these also what lies in a directory that they do not have.
        """
        known = {id_: image.cluster.brokers.get(id_) for id_ in brokers}
        registered = {id_: broker for id_, broker in known.items() if broker is not None and broker.directories}
        online = online_places(image, sorted(begun_anew & registered.keys()))
        if (registered.keys(), begun_anew, online) != (self._registered.keys(), self._begun_anew, self._online):
            self._seen, self._pages = (), {}
        self._image, self._registered = image, registered
        self._begun_anew, self._online = begun_anew, online
        seen, self._seen = self._seen, image.partitions.pages
        for number in other_pages(seen, self._seen):
            if number < len(seen) and _is_alike(seen[number], self._seen[number]):
                continue
            unplaced = self._look(self._seen[number])
            self._pages[number] = unplaced
            if not len(unplaced.rows):
                del self._pages[number]
        for number in [number for number in self._pages if number >= len(self._seen)]:
            del self._pages[number]

    def of(self, broker_id: int) -> list[Replica]:
        """One broker's, in the order of the table."""
        assert self._image is not None
        table = self._image.partitions
        rows = [
            (number << PAGE_SHIFT) + row
            for number, unplaced in sorted(self._pages.items())
            for row in unplaced.rows[unplaced.brokers == broker_id].tolist()
        ]
        return [(table.topic_id(row), table.partition_id(row)) for row in rows]

    def _look(self, page: Page) -> _Unplaced:
        mine = (np.arange(page.width)[:, None] < page.replica_counts) & np.isin(page.slots, list(self._registered))
        slots, rows = np.nonzero(mine)
        brokers, codes = page.slots[slots, rows], page.directories[slots, rows]
        is_unplaced = np.isin(codes, (MIGRATING_CODE, UNASSIGNED_CODE))
        is_unplaced |= np.isin(brokers, list(self._begun_anew)) & ~self._online.has(brokers, codes)
        return _Unplaced(rows[is_unplaced], brokers[is_unplaced])


def choose_directories(
    image: MetadataImage, broker_id: int, replicas: Collection[Replica], said: Collection[Uuid]
) -> dict[Replica, Uuid]:
    """A directory for each replica: the one that holds fewest then.

    Args:
        said: the directories of replicas that are on their way into the image.
    """
    broker = image.cluster.brokers[broker_id]
    open_ = [one for one in broker.directories if one not in broker.cordoned_directories] or list(broker.directories)
    held = _held(image, broker_id, open_)
    for directory in said:
        if directory in held:
            held[directory] += 1
    chosen: dict[Replica, Uuid] = {}
    for replica in replicas:
        fewest = min(open_, key=held.__getitem__)
        held[fewest] += 1
        chosen[replica] = fewest
    return chosen


def _held(image: MetadataImage, broker_id: int, directories: Collection[Uuid]) -> dict[Uuid, int]:
    columns = image.partitions.gather(image.partitions.rows_with_replica(broker_id))
    codes = columns.directories[columns.slots == broker_id]
    counts = np.bincount(codes[codes >= 0], minlength=len(image.partitions.directories))
    known = {directory: image.partitions.directories.code(directory) for directory in directories}
    return {directory: 0 if code is None else int(counts[code]) for directory, code in known.items()}


def _is_alike(old: Page, new: Page) -> bool:
    names = ("topic_ids", "partition_ids", "slots", "directories", "replica_counts")
    return all(getattr(old, name) is getattr(new, name) for name in names)
