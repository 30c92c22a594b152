"""Brokers that are not registered and hold replicas: what is left when one was unregistered before it was emptied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.page_access import has_replica
from quorate.snapshots.table.pages import NO_BROKER


class UnregisteredBrokers:
    """Finds them in images, one after the other. Not thread-safe.

    Most changes leave the brokers of partitions as they are, and pages then share them: these are looked at once.
    """

    def __init__(self) -> None:
        #: By identity of the slots of the last image's pages, which are kept so that an identity means something.
        self._mentioned: dict[int, tuple[NDArray[Any], frozenset[int]]] = {}
        #: For tests: arrays of slots that had to be looked at.
        self.looked_at = 0

    def count(self, image: MetadataImage) -> dict[int, int]:
        """The number of replicas that each of them holds, by id."""
        pages = image.partitions.pages
        self._mentioned = {id(page.slots): self._brokers(page.slots) for page in pages}
        registered = image.cluster.brokers
        # Sets of slots mention more than replicas: what nobody registered is looked at closely.
        unknown = {id_ for _, ids in self._mentioned.values() for id_ in ids if id_ not in registered}
        held = {
            id_: sum(
                int(np.count_nonzero(has_replica(page, id_)))
                for page in pages
                if id_ in self._mentioned[id(page.slots)][1]
            )
            for id_ in sorted(unknown)
        }
        return {id_: count for id_, count in held.items() if count}

    def _brokers(self, slots: NDArray[Any]) -> tuple[NDArray[Any], frozenset[int]]:
        known = self._mentioned.get(id(slots))
        if known is not None:
            return known
        self.looked_at += 1
        return slots, frozenset(np.unique(slots).tolist()) - {NO_BROKER}
