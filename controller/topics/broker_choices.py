"""The registered brokers as placing new partitions needs them, worked out once for each version of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.topics.placement import Racks, UsableBroker
from quorate.metadata_log.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, UUID_BYTES, Uuid
from quorate.snapshots.table.cluster import BrokerRegistration, ClusterImage


@dataclass(frozen=True, slots=True, eq=False)
class BrokerChoices:
    """The brokers that replicas may go to, and the facts about a replica on each."""

    #: Of the brokers that may be given replicas.
    racks: Racks
    #: int32[b], ascending: all registered brokers; the columns below go with it.
    ids: NDArray[np.int32]
    is_active: NDArray[np.bool_]
    #: uint8[b, 16]
    directories: NDArray[np.uint8]
    #: The same by broker: whether it is active, and its directory.
    by_id: dict[int, tuple[bool, Uuid]]


class _NewestChoices:
    """The choices that were asked for last. A memo only: answers do not depend on it."""

    def __init__(self) -> None:
        self._made: tuple[ClusterImage, BrokerChoices] | None = None

    def of(self, cluster: ClusterImage) -> BrokerChoices:
        made = self._made
        if made is None or made[0] is not cluster:
            made = self._made = cluster, _choices(cluster)
        return made[1]


_NEWEST: Final = _NewestChoices()


def broker_choices(cluster: ClusterImage) -> BrokerChoices:
    """Those of the brokers of an image."""
    return _NEWEST.of(cluster)


def _choices(cluster: ClusterImage) -> BrokerChoices:
    brokers = sorted(cluster.brokers.values(), key=lambda broker: broker.id)
    directories = [default_directory(broker) for broker in brokers]
    return BrokerChoices(
        racks=Racks(_usable(broker) for broker in brokers if _is_usable(broker)),
        ids=np.array([broker.id for broker in brokers], np.int32),
        is_active=np.array([broker.is_active for broker in brokers], np.bool_),
        directories=np.frombuffer(b"".join(directories), np.uint8).reshape(-1, UUID_BYTES),
        by_id={
            broker.id: (broker.is_active, directory) for broker, directory in zip(brokers, directories, strict=True)
        },
    )


def _usable(broker: BrokerRegistration) -> UsableBroker:
    return UsableBroker(broker.id, broker.rack, broker.is_fenced)


def _is_usable(broker: BrokerRegistration) -> bool:
    """All may be given replicas but those that shut down or have no directory that takes any."""
    is_cordoned = bool(broker.directories) and set(broker.directories) <= set(broker.cordoned_directories)
    return (broker.is_fenced or not broker.in_controlled_shutdown) and not is_cordoned


def default_directory(broker: BrokerRegistration | None) -> Uuid:
    """The directory that a new replica on this broker is said to be in, until the broker says (Kafka's
    ``DefaultDirProvider``).
    """
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED
