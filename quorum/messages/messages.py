"""The closed list of what nodes say to each other.

Nodes speak (offset, epoch) only; no raft index ever leaves a process. All offsets are exclusive ends. Every message
carries the sender's epoch first. ``round`` counts the leader's passes over its followers within an epoch; a reply
echoes the request's epoch and round, so that a late reply can neither count in another epoch nor confirm a later
read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Append:
    """Leader to follower: batches that follow (prev_end, prev_epoch). Without batches it is a heartbeat."""

    epoch: int
    round: int
    prev_end: int
    prev_epoch: int
    high_watermark: int
    #: Whole batches back to back, as they lie in the log.
    batches: bytes
    #: (node id, acknowledged end) of every follower, so that those left behind can rank themselves.
    acknowledged: tuple[tuple[int, int], ...]
    #: The commit point may restore this follower's vote: see ``vouching``.
    is_vouched: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """Leader to follower: the commit point moved. Not answered."""

    epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class AppendReply:
    """Follower to leader: the log matches up to ``matched_end`` and is durable up to ``acked_end`` <= it."""

    epoch: int
    round: int
    matched_end: int
    acked_end: int
    #: False: this acknowledgement must not count for the commit point.
    is_voter: bool


@dataclass(frozen=True, slots=True)
class AppendConflict:
    """Follower to leader: no match at prev_end; try again at the last boundary not above ``hint_end``."""

    epoch: int
    round: int
    hint_end: int
    is_voter: bool


@dataclass(frozen=True, slots=True)
class StaleEpoch:
    """Answer to an epoch below the own."""

    epoch: int


@dataclass(frozen=True, slots=True)
class PreVote:
    """Would you vote for me in ``epoch``? Changes nothing on either side."""

    epoch: int
    round: int
    last_epoch: int
    log_end: int


@dataclass(frozen=True, slots=True)
class PreVoteReply:
    """``epoch`` is the replier's own, the asked one is known by the round."""

    epoch: int
    round: int
    is_granted: bool
    #: Whether the replier still follows a living leader.
    has_leader: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """Vote for me in ``epoch``."""

    epoch: int
    last_epoch: int
    log_end: int


@dataclass(frozen=True, slots=True)
class VoteReply:
    """Granted: counts in ``epoch`` only. Refused: ``epoch`` is the replier's own."""

    epoch: int
    is_granted: bool


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """Leader to followers: I stopped leading this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class CheckpointOffer:
    """Leader to a follower whose next batch is no longer in the log: take this checkpoint. Counts as a heartbeat."""

    epoch: int
    round: int
    end_offset: int
    last_epoch: int
    #: Bytes, and CRC-32C, of the whole file.
    size: int
    crc: int
    #: Content of the manifest beside it; empty when it has none.
    manifest: bytes


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """Follower to leader: the offer was heard; ``position`` bytes of it are here."""

    epoch: int
    round: int
    position: int
    is_voter: bool


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """Follower to leader, on the bulk connection."""

    epoch: int
    end_offset: int
    last_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class ChunkMessage:
    """Leader to follower, on the bulk connection. Without data: the checkpoint is not to be had here (any more)."""

    epoch: int
    end_offset: int
    last_epoch: int
    position: int
    #: CRC-32C of ``data``.
    crc: int
    data: bytes


Message = (
    Append
    | Commit
    | AppendReply
    | AppendConflict
    | StaleEpoch
    | PreVote
    | PreVoteReply
    | Vote
    | VoteReply
    | EndEpoch
    | CheckpointOffer
    | CheckpointProgress
    | ChunkRequest
    | ChunkMessage
)
