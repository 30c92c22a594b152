"""Settings of one node of the quorum, and the relations between them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.checkpoints.retention import RetentionConfig
from quorate.metadata_log.ids import ZERO_UUID, Uuid, uuid_text
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.errors import ProtocolError
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION

#: Check-quorum: a leader that no majority answered for this many election timeouts stops leading (as Kafka's does).
CHECK_QUORUM_FACTOR: Final = 1.5
#: 5 ms at the usual interval: several commits of a busy leader, and nothing that a reader elsewhere would notice.
HOLD_BACK_FACTOR: Final = 0.05
#: A connection on which nothing was read for this many election timeouts is dead. More than one, so that an election
#: that comes of it would have come anyway.
SILENCE_FACTOR: Final = 3.0


class InvalidQuorumConfig(ProtocolError, ValueError):
    """Settings that contradict each other. Names the value and the rule."""


@dataclass(frozen=True, slots=True)
class VoterAddress:
    """A voter and where it listens."""

    node_id: int
    host: str
    port: int
    #: Zero when unknown (kraft.version 0).
    directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class QuorumTiming:
    """Times in seconds. Safety never depends on them."""

    #: A follower that hears no leader for a random time in this range asks for an election.
    election_timeout_min: float
    election_timeout_max: float
    heartbeat_interval: float
    #: A leader whose disk has not answered for this long, or took longer for one write, gives up leadership.
    disk_timeout: float
    #: After a broken connection, voters ask one after the other: rank x this.
    stagger: float = 0.03
    #: Having granted, a voter does not ask for itself for this long.
    grant_hold: float = 0.05
    #: A lost fast round is asked again after a random time in this range.
    retry_min: float = 0.02
    retry_max: float = 0.05
    #: A fast round nobody decided is lost after this long.
    fast_round_timeout: float = 0.08
    #: A turn of the loop that comes this late means that the process was stopped.
    pause_threshold: float = 0.15
    #: After a pause, timers wait this long so that the sockets are read first.
    wake_grace: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval * 3 < self.election_timeout_min:
            raise InvalidQuorumConfig(
                f"heartbeat_interval {self.heartbeat_interval} s must be under a third of "
                f"election_timeout_min {self.election_timeout_min} s"
            )
        if not self.election_timeout_min < self.election_timeout_max:
            raise InvalidQuorumConfig(
                f"election_timeout_max {self.election_timeout_max} s must be above "
                f"election_timeout_min {self.election_timeout_min} s"
            )

    @property
    def check_quorum_timeout(self) -> float:
        return CHECK_QUORUM_FACTOR * self.election_timeout_min

    @property
    def silence_max(self) -> float:
        """A connection is given up when nothing was read on it for so long: see ``silence``."""
        return SILENCE_FACTOR * self.election_timeout_min

    @property
    def connect_timeout(self) -> float:
        """An attempt to reach a peer takes no longer."""
        return self.election_timeout_max

    @property
    def hold_back(self) -> float:
        """Followers that a commit does not wait for get its entries at most this much later than those it does."""
        return HOLD_BACK_FACTOR * self.heartbeat_interval


@dataclass(frozen=True, slots=True)
class QuorumLimits:
    """Bounds on work and memory."""

    #: Bytes of batches that wait for the own disk: a leader gives up leadership, a follower takes no more. Above what a
    #: leader lets wait for its commit, so that a busy one on a slow disk refuses before it resigns.
    unwritten_bytes: int
    #: Bytes of batches in one message; a larger single batch goes alone.
    append_bytes: int = 1024 * 1024
    #: Bytes sent to one follower and not yet matched by it.
    inflight_bytes: int = 4 * BATCH_BYTES_MAX
    #: Bytes that one pass reads and sends for one follower; with its answers come the next. A follower that is far
    #: behind is sent what the disk must be asked for, and nobody else is heard meanwhile.
    pass_bytes: int = 4 * 1024 * 1024
    #: Bytes that wait to be sent on one connection; over it the connection is closed. Above ``inflight_bytes`` there
    #: is room for a batch more, which a probe sends, and for what is small: heartbeats, reads, votes.
    write_buffer_bytes: int = 8 * BATCH_BYTES_MAX
    #: Room on the log's disk below which a node does not stand for election.
    free_bytes: int = 1024 * 1024
    #: Bytes of a checkpoint in one message.
    chunk_bytes: int = 1024 * 1024
    #: Batches handed to the listener in one turn of the loop.
    apply_batches: int = 1024
    #: Bytes of them; a larger single batch goes alone. Some 20,000 partition changes, 15 ms of replay.
    apply_bytes: int = 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("append_bytes", "chunk_bytes"):
            value = getattr(self, name)
            if not 0 < value <= BATCH_BYTES_MAX:
                raise InvalidQuorumConfig(
                    f"{name} {value} must be above 0 and at most the largest batch, {BATCH_BYTES_MAX}"
                )
        if self.write_buffer_bytes < self.inflight_bytes + 2 * BATCH_BYTES_MAX:
            raise InvalidQuorumConfig(
                f"write_buffer_bytes {self.write_buffer_bytes} must be at least inflight_bytes {self.inflight_bytes} "
                f"and twice the largest batch, {BATCH_BYTES_MAX}"
            )


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """The identity of this node and of those that it agrees with."""

    cluster_id: str
    node_id: int
    directory_id: Uuid
    #: All voters, this node included. 1, 3 or 5 are sensible; any odd or even number works.
    voters: tuple[VoterAddress, ...]
    #: 0: static voters, plain LeaderChange. 1: the voters are written to the log.
    kraft_version: int
    #: Where this node's process serves HTTP, for who looks for it at the quorum's port; empty: nowhere.
    http_url: str
    timing: QuorumTiming
    limits: QuorumLimits
    retention: RetentionConfig
    #: Of the versions of messages none above this is spoken.
    newest_version: int
    #: How often the quorum was rebuilt, as an epoch: see ``MetaProperties.generation``.
    generation: int = 0
    #: Name of the controllers' listener in the voters record.
    listener_name: str = "CONTROLLER"

    def __post_init__(self) -> None:
        ids = [voter.node_id for voter in self.voters]
        if len(set(ids)) != len(ids):
            raise InvalidQuorumConfig(f"voters {ids} name a node twice")
        if self.node_id not in ids:
            raise InvalidQuorumConfig(f"node {self.node_id} is not among the voters {ids}")
        if any(node_id < 0 for node_id in ids):
            raise InvalidQuorumConfig(f"voters {ids}: ids must not be negative")
        if not OLDEST_VERSION <= self.newest_version <= NEWEST_VERSION:
            raise InvalidQuorumConfig(
                f"newest_version {self.newest_version} is not between {OLDEST_VERSION} and {NEWEST_VERSION}"
            )
        if self.kraft_version not in (0, 1):
            raise InvalidQuorumConfig(f"kraft.version {self.kraft_version} is neither 0 nor 1")

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def peer_ids(self) -> tuple[int, ...]:
        """The other voters, ascending."""
        return tuple(sorted(voter.node_id for voter in self.voters if voter.node_id != self.node_id))

    @property
    def voter_set_crc(self) -> int:
        """Equal on nodes that are configured with the same voters; compared in the handshake."""
        voters = sorted(self.voters, key=lambda voter: voter.node_id)
        text = ",".join(f"{voter.node_id}:{uuid_text(voter.directory_id)}" for voter in voters)
        return zlib.crc32(text.encode("ascii"))
