"""Replicas that leaders here want in ISRs, from when that was said until it is known what became of it.

Until then a controller may have elected one of them. Rules of the file: no clock, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage


class PartitionKey(NamedTuple):
    """A partition."""

    topic_id: Uuid
    partition: int


@dataclass(slots=True)
class _Claim:
    """One replica of one partition."""

    #: Of the state from which it was asked for; what is asked from it is refused once that has passed.
    partition_epoch: int
    #: A request with it has left, and no refusal has come since the last one.
    is_sent: bool = False


class Claims:
    """See the module."""

    def __init__(self) -> None:
        self._open: dict[PartitionKey, dict[int, _Claim]] = {}

    def said(self, key: PartitionKey, partition_epoch: int, broker: int) -> None:
        """A replica is to be in the ISR."""
        self._open.setdefault(key, {}).setdefault(broker, _Claim(partition_epoch))

    def taken_back(self, key: PartitionKey, broker: int) -> bool:
        """It is not, after all. Returns whether that is so at once: no request may still bring it in."""
        claim = self._open.get(key, {}).get(broker)
        if claim is not None and claim.is_sent:
            return False
        self._forget(key, broker)
        return True

    def members(self, key: PartitionKey) -> frozenset[int]:
        """Replicas that may be in the ISR though the image does not show it."""
        return frozenset(self._open.get(key, ()))

    def sent(self, proposals: IsrProposals) -> None:
        """A request leaves."""
        table = proposals.image.partitions
        for (key, members, partition_epoch), row in zip(_rows(proposals), proposals.rows.tolist(), strict=True):
            for broker in members.difference(table.partition(row).isr):
                self._open.setdefault(key, {})[broker] = _Claim(partition_epoch, is_sent=True)

    def answered(self, proposals: IsrProposals, codes: NDArray[np.int16]) -> None:
        """It was answered: what was refused has not happened. What was granted shows in an image."""
        for (key, members, partition_epoch), code in zip(_rows(proposals), codes.tolist(), strict=True):
            if code != ErrorCode.NONE:
                for broker, claim in self._open.get(key, {}).items():
                    if broker in members and claim.partition_epoch == partition_epoch:
                        claim.is_sent = False

    def update(self, image: MetadataImage) -> None:
        """A partition that has changed since shows what became of the claims on it."""
        for key, claims in list(self._open.items()):
            row = image.partitions.row(*key)
            state = None if row is None else image.partitions.partition(row)
            for broker, claim in list(claims.items()):
                if (
                    state is None
                    or broker in state.isr
                    or (claim.is_sent and state.partition_epoch > claim.partition_epoch)
                ):
                    self._forget(key, broker)

    def _forget(self, key: PartitionKey, broker: int) -> None:
        claims = self._open.get(key, {})
        claims.pop(broker, None)
        if not claims:
            self._open.pop(key, None)


def _rows(proposals: IsrProposals) -> list[tuple[PartitionKey, frozenset[int], int]]:
    return [
        (
            PartitionKey(proposals.topic_ids[at].tobytes(), int(proposals.partition_ids[at])),
            frozenset(proposals.isr[at].tolist()) - {NO_MEMBER},
            int(proposals.partition_epochs[at]),
        )
        for at in range(len(proposals))
    ]
