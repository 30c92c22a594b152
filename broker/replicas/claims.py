"""Replicas that leaders here want in ISRs, from when that was said until it is known what became of it.

Until then a controller may have elected one of them. Rules of the file: no clock, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage

#: Partition epoch of a claim that no request carried.
UNSENT: Final = -1


class PartitionKey(NamedTuple):
    """A partition."""

    topic_id: Uuid
    partition: int


@dataclass(slots=True)
class _Claim:
    """One replica of one partition, as it was asked for last."""

    #: Of the leader and of the replica's registration: what they said is over when one of them is another.
    leader_epoch: int
    broker_epoch: int
    #: Of the state from which it was asked for; what is asked from it is refused once that has passed.
    partition_epoch: int = UNSENT
    #: Requests with it that left from that state and were not refused; one that got no answer may still arrive.
    open_requests: int = 0

    def is_of(self, partition_epoch: int, broker_epoch: int) -> bool:
        """Whether a request with these epochs is one of those."""
        return (self.partition_epoch, self.broker_epoch) == (partition_epoch, broker_epoch)


class Claims:
    """See the module."""

    def __init__(self) -> None:
        self._open: dict[PartitionKey, dict[int, _Claim]] = {}

    def said(self, key: PartitionKey, leader_epoch: int, broker: int, broker_epoch: int) -> None:
        """A replica is to be in the ISR."""
        self._open.setdefault(key, {}).setdefault(broker, _Claim(leader_epoch, broker_epoch))

    def taken_back(self, key: PartitionKey, broker: int) -> bool:
        """It is not, after all. Returns whether that is so at once: no request may still bring it in."""
        claim = self._open.get(key, {}).get(broker)
        if claim is not None and claim.open_requests:
            return False
        self._forget(key, broker)
        return True

    def members(self, key: PartitionKey) -> frozenset[int]:
        """Replicas that may be in the ISR though the image does not show it."""
        return frozenset(self._open.get(key, ()))

    def sent(self, proposals: IsrProposals) -> None:
        """A request leaves."""
        table = proposals.image.partitions
        rows = zip(_rows(proposals), proposals.rows.tolist(), proposals.leader_epochs.tolist(), strict=True)
        for (key, members, partition_epoch), row, leader_epoch in rows:
            for broker in members.keys() - table.partition(row).isr:
                claims = self._open.setdefault(key, {})
                claim = claims.get(broker)
                if claim is None or not claim.is_of(partition_epoch, members[broker]):
                    claim = claims[broker] = _Claim(leader_epoch, members[broker], partition_epoch)
                claim.open_requests += 1

    def answered(self, proposals: IsrProposals, codes: NDArray[np.int16]) -> None:
        """It was answered: what was refused has not happened, which says nothing of other requests.

        What was granted shows in an image.
        """
        for (key, members, partition_epoch), code in zip(_rows(proposals), codes.tolist(), strict=True):
            if code != ErrorCode.NONE:
                for broker, claim in self._open.get(key, {}).items():
                    if broker in members and claim.is_of(partition_epoch, members[broker]):
                        claim.open_requests -= 1

    def update(self, image: MetadataImage) -> None:
        """An image shows what became of claims: whoever is in needs none, and what rested on epochs that have passed
        cannot happen any more. A replica that is still wanted then is asked for anew."""
        for key, claims in list(self._open.items()):
            row = image.partitions.row(*key)
            state = None if row is None else image.partitions.partition(row)
            for broker, claim in list(claims.items()):
                registered = image.cluster.brokers.get(broker)
                if (
                    state is None
                    or broker in state.isr
                    or broker not in state.replicas
                    or state.leader_epoch > claim.leader_epoch
                    or registered is None
                    or registered.epoch > claim.broker_epoch
                ):
                    self._forget(key, broker)
                elif state.partition_epoch > claim.partition_epoch:
                    claim.open_requests = 0

    def _forget(self, key: PartitionKey, broker: int) -> None:
        claims = self._open.get(key, {})
        claims.pop(broker, None)
        if not claims:
            self._open.pop(key, None)


def _rows(proposals: IsrProposals) -> list[tuple[PartitionKey, dict[int, int], int]]:
    """Of each partition the members that are asked for, with their broker epochs, and its own epoch."""
    members = zip(proposals.isr.tolist(), proposals.isr_broker_epochs.tolist(), strict=True)
    return [
        (
            PartitionKey(proposals.topic_ids[at].tobytes(), int(proposals.partition_ids[at])),
            {broker: epoch for broker, epoch in zip(ids, epochs, strict=True) if broker != NO_MEMBER},
            int(proposals.partition_epochs[at]),
        )
        for at, (ids, epochs) in enumerate(members)
    ]
