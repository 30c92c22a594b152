"""The metadata cache: answers from the newest published image (Kafka's ``KRaftMetadataCache``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.broker.publisher import ControllerEpoch, Manifest, MetadataPublisher
from quorate.metadata_log.ids import NO_LEADER
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.page_access import has_leader
from quorate.snapshots.table.pages import Page, other_pages
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.views.derived_states import offline_replicas, replica_states
from quorate.snapshots.views.state_names import ReplicaState


@dataclass(frozen=True, slots=True)
class ClientPartition:
    """A partition as clients see it."""

    partition_id: int
    state: Partition
    #: The leader if clients can reach it; None: none, or it is fenced (Kafka's LEADER_NOT_AVAILABLE).
    available_leader: int | None
    #: One for each replica, in their order.
    replica_states: tuple[ReplicaState, ...]

    @property
    def offline_replicas(self) -> tuple[int, ...]:
        """Replicas whose broker is unregistered or fenced, or whose directory is gone."""
        return tuple(offline_replicas(self.state, self.replica_states))


class MetadataCache(MetadataPublisher):
    """One reference to an immutable image: readers never wait and never see half an update."""

    wants_every_offset = True  # answers say at which offset

    def __init__(self) -> None:
        self.image = EMPTY_IMAGE
        self.controller: ControllerEpoch | None = None
        #: Rows without a leader of each of these pages.
        self._counted_pages: tuple[Page, ...] = ()
        self._offline: list[int] = []

    @property
    def name(self) -> str:
        return "metadata-cache"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self.image = image
        self._count_offline()

    def on_controller_change(self, controller: ControllerEpoch) -> None:
        self.controller = controller

    def still(self) -> MetadataCache:
        """The same at the image of now, for a thread that reads it for a while."""
        still = MetadataCache()
        still.image, still.controller = self.image, self.controller
        still._counted_pages, still._offline = self._counted_pages, self._offline.copy()
        return still

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """A registration, fenced or not."""
        return self.image.cluster.brokers.get(broker_id)

    def alive_brokers(self) -> list[BrokerRegistration]:
        """Unfenced brokers, by id: those that clients are told of."""
        brokers = self.image.cluster.brokers
        return [brokers[id_] for id_ in sorted(brokers) if not brokers[id_].is_fenced]

    def topic(self, name: str) -> Topic | None:
        """A topic by name."""
        return self.image.topics.by_name.get(name)

    def partitions(self, topic: Topic) -> list[ClientPartition]:
        """A topic's partitions, by number."""
        found = self.image.partitions.partitions_of(topic.id)
        return [self._view(partition_id, state) for partition_id, state in found]

    def offline_partition_count(self) -> int:
        """Partitions without a leader. Of all that is counted of partitions a broker tells this only."""
        return sum(self._offline)

    def _count_offline(self) -> None:
        """Count pages that are new: with each image few, so that whoever asks waits for none."""
        before, pages = self._counted_pages, self.image.partitions.pages
        self._counted_pages = pages
        del self._offline[len(pages) :]
        self._offline += [0] * (len(pages) - len(self._offline))
        for number in other_pages(before, pages):
            self._offline[number] = _without_leader(pages[number])

    def _view(self, partition_id: int, state: Partition) -> ClientPartition:
        leader = self.broker(state.leader) if state.leader != NO_LEADER else None
        available = None if leader is None or leader.is_fenced else leader.id
        return ClientPartition(partition_id, state, available, tuple(replica_states(self.image, state)))


def _without_leader(page: Page) -> int:
    return 0 if page.is_blank else int(np.count_nonzero(has_leader(page, NO_LEADER)))
