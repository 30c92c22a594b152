"""The quorum's errors: refusals, and the failures that stop its node."""

from __future__ import annotations

from quorate.metadata_log.errors import NotController, QuorateError
from quorate.metadata_log.limits import BATCH_BYTES_MAX


class ProtocolError(QuorateError):
    """A peer sent what the protocol does not allow. Its connection is closed; nothing was changed."""


class SecondLeader(ProtocolError):
    """Two nodes say that they lead one epoch: one of them lies, or somebody has forgotten a vote."""

    def __init__(self, first: int, second: int, epoch: int) -> None:
        super().__init__(
            f"node {second} says that it leads epoch {epoch}, which node {first} leads: one of them is wrong, or an old"
            " election state was restored"
        )


class HandshakeRefused(ProtocolError):
    """A peer that must not be talked to: another cluster, node, voter set, version, or a wrong secret."""


class UnsupportedLibrary(QuorateError):
    """The installed PySyncObj is not the one whose private methods this package was written against."""


class FatalFault(QuorateError):
    """The node must stop: going on could break a promise. The process exits; nothing is retried."""


class Superseded(FatalFault):
    """The quorum was rebuilt without this node: what it holds is of the past, and it may agree on nothing."""

    def __init__(self, own: int, newer: int, node_id: int) -> None:
        super().__init__(
            f"node {node_id} is of generation {newer}, this one of generation {own}: the quorum was rebuilt, and"
            " this directory may take no part in it; move it away, then: quorate recover rejoin"
        )


class BatchTooLarge(QuorateError):
    """The log holds a batch that no peer would take: nothing behind it could ever be agreed on."""

    def __init__(self, base_offset: int, size: int) -> None:
        super().__init__(
            f"the log holds a batch of {size} bytes at offset {base_offset}, and {BATCH_BYTES_MAX} is the most that can"
            " be sent to another controller: begin from a checkpoint after it"
        )
        self.base_offset = base_offset
        self.size = size


class DiskFailed(FatalFault):
    """A call to the disk failed. Nothing is retried: what is in the page cache may never reach the disk."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the disk failed: {error}")


class NotLeader(NotController):
    """An append or a read barrier on a node that does not lead in the epoch that was named."""

    def __init__(self, leader_id: int | None, epoch: int, current_epoch: int) -> None:
        hint = "no leader is known" if leader_id is None else f"the leader is {leader_id}"
        super().__init__(leader_id, f"this node does not lead epoch {epoch}: in epoch {current_epoch} {hint}")
        self.epoch = epoch
        self.current_epoch = current_epoch


class InvalidCheckpointOffset(QuorateError, ValueError):
    """An offset at which this node can take no checkpoint."""

    def __init__(self, offset: int, start_offset: int, applied_end: int) -> None:
        super().__init__(f"no checkpoint at {offset}: a batch must end there, within {start_offset}..{applied_end}")
        self.offset = offset
