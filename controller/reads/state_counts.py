"""Partitions and replicas by state, counted off the loop and kept page by page."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.api.resources import StatesReply
from quorate.controller.reads.read_turns import run_in_turn
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, Page
from quorate.snapshots.views.derived_states import StateCounting
from quorate.snapshots.views.state_names import (
    NEW_PARTITION,
    NEW_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
    PartitionState,
    ReplicaState,
)

_PARTITION_STATES: Final[tuple[PartitionState, ...]] = (NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION)
_REPLICA_STATES: Final[tuple[ReplicaState, ...]] = (NEW_REPLICA, ONLINE_REPLICA, OFFLINE_REPLICA)
_Counts = NDArray[np.int64]


class CountedStates:
    """States in a node's committed images: one count at a time, on another thread."""

    def __init__(self) -> None:
        self._counter = StateCounter()
        self._lock = asyncio.Lock()

    async def count(self, image: MetadataImage) -> StatesReply:
        """States in an image. An image is a value: another thread may read it."""
        return await run_in_turn(partial(self._counter.count, image), self._lock)


class StateCounter:
    """Counts images, one after the other. Not thread-safe: one count at a time."""

    def __init__(self) -> None:
        #: By identity: the pages of the image counted last. Each is kept, for an identity means something only as long
        #: as its object lives.
        self._pages: dict[int, tuple[Page, _Counts]] = {}
        #: What the counts depend on beside the page, of the image counted last.
        self._surroundings: tuple[object, object] = (None, None)
        #: For tests: pages that had to be counted.
        self.pages_counted = 0

    def count(self, image: MetadataImage) -> StatesReply:
        """States in an image. May take some hundred milliseconds for a million partitions after a broker changed."""
        surroundings = image.cluster.brokers, image.partitions.directories
        if any(one is not before for one, before in zip(surroundings, self._surroundings, strict=True)):
            self._pages = {}
            self._surroundings = surroundings
        counting = StateCounting(image)
        self._pages = {
            id(page): (page, self._counted(counting, image, number, page))
            for number, page in enumerate(image.partitions.pages)
        }
        states = (*_PARTITION_STATES, *_REPLICA_STATES)
        total = sum((counts for _, counts in self._pages.values()), np.zeros(len(states), np.int64)).tolist()
        return StatesReply(
            partitions=dict(zip(_PARTITION_STATES, total, strict=False)),
            replicas=dict(zip(_REPLICA_STATES, total[len(_PARTITION_STATES) :], strict=True)),
        )

    def _counted(self, counting: StateCounting, image: MetadataImage, number: int, page: Page) -> _Counts:
        known = self._pages.get(id(page))
        if known is not None:
            return known[1]
        self.pages_counted += 1
        columns = image.partitions.gather(np.arange(number * PAGE_ROWS, (number + 1) * PAGE_ROWS))
        found = counting.count(columns)
        counts = [found.partitions[state] for state in _PARTITION_STATES]
        return np.array([*counts, *(found.replicas[state] for state in _REPLICA_STATES)], np.int64)
