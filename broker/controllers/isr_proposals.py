"""ISR changes that one leader asks for, as columns: what ``alter_partition`` carries, for thousands of partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition_columns import PartitionColumns

#: Padding of an ISR.
NO_MEMBER: Final = -1
#: Above every broker id, so that sorting moves it behind them.
_NO_ID: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposals:
    """The ISRs that a leader wants for n partitions, and the state that it wants them from."""

    leader: int
    #: uint8[n, 16]
    topic_ids: NDArray[np.uint8]
    #: int32[n] each.
    partition_ids: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    partition_epochs: NDArray[np.int32]
    #: int32[n, k]: the new ISRs, each sorted by id (as Kafka's leaders send them), padded with -1.
    isr: NDArray[np.int32]
    #: int64[n, k]: the epoch under which each member is registered; -1 in the padding.
    isr_broker_epochs: NDArray[np.int64]
    #: The image they were made from, and int64[n], the partitions' rows in it.
    image: MetadataImage
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.partition_ids)


def proposals_of(
    leader: int,
    image: MetadataImage,
    columns: PartitionColumns,
    at: NDArray[np.int64],
    wanted: NDArray[np.uint64],
) -> IsrProposals:
    """Proposals to make the ``wanted`` slots (masks) the ISRs of the rows ``at`` of some columns of ``image``.

    ``leader`` leads them all. Members are registered brokers: those in an ISR are, and only active ones enter it.
    """
    in_isr = (wanted[:, None] >> np.arange(columns.width, dtype=np.uint64)) & np.uint64(1) == 1
    ids = np.where(in_isr, columns.slots[at], np.int32(_NO_ID))
    ids.sort(axis=1)
    ids = ids[:, : int(in_isr.sum(axis=1).max())]
    members = np.where(ids == _NO_ID, np.int32(NO_MEMBER), ids)
    return IsrProposals(
        leader=leader,
        topic_ids=columns.topic_ids[at],
        partition_ids=columns.partition_ids[at],
        leader_epochs=columns.leader_epochs[at],
        partition_epochs=columns.partition_epochs[at],
        isr=members,
        isr_broker_epochs=_broker_epochs(image, members),
        image=image,
        rows=columns.rows[at],
    )


def _broker_epochs(image: MetadataImage, brokers: NDArray[np.int32]) -> NDArray[np.int64]:
    known = np.unique(brokers)  # the padding among them: no broker has its id
    registrations = (image.cluster.brokers.get(broker) for broker in known.tolist())
    epochs = np.array([-1 if found is None else found.epoch for found in registrations], np.int64)
    return epochs[np.searchsorted(known, brokers)]
