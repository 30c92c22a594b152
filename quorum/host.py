"""The interface between a node and its process: what the node needs, and what it tells the program it serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.disk import DiskJob
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.storage.disk_queue import DiskGroup


class Host(Protocol):
    """Clock, sockets, disk thread and loop of one node. Everything is called on the loop thread."""

    def now(self) -> float:
        """Monotonic seconds. Never used for safety."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970: the time in control batches, and how old checkpoints are. It may jump either way."""

    def send(self, peer: int, channel: Channel, payload: bytes) -> None:
        """Send a message if a connection stands; otherwise it is lost."""

    def run_group(self, group: DiskGroup) -> bool:
        """Run ``group`` on the disk thread, return False, then call ``QuorumNode.disk_done`` or ``fail``.

        A group that ``is_short`` may be run at once instead: return True when it is done.

        Raises:
            OSError: the disk failed, in a group that was run at once.
        """

    def run_bulk_job(self, job: DiskJob) -> None:
        """Run ``job`` on another thread than groups, then call ``QuorumNode.bulk_done`` or ``fail``."""

    def request_pump(self) -> None:
        """Call ``QuorumNode.pump`` once in the next turn of the loop, however often this was asked."""

    def next_turn(self, action: Callable[[], None]) -> None:
        """Call ``action`` in the next turn of the loop."""

    def fatal(self, error: BaseException) -> None:
        """The node must not do anything any more. The process ends."""


class CommittedBatches:
    """Batches that were committed, in log order. To be read during the call that hands them over."""

    __slots__ = ("_first", "_journal", "_last", "base_offset", "end_offset")

    def __init__(self, journal: LogJournal, first: int, last: int) -> None:
        """``first`` and ``last`` are raft indexes, both inclusive."""
        self._journal = journal
        self._first = first
        self._last = last
        #: Offset of the first record.
        self.base_offset = journal.end_of(first - 1)
        #: Exclusive end of the last record.
        self.end_offset = journal.end_of(last)

    def __len__(self) -> int:
        return self._last - self._first + 1

    def __iter__(self) -> Iterator[bytes]:
        """Each batch as it lies in the log."""
        for index in range(self._first, self._last + 1):
            yield self._journal.read(index)


class SnapshotReader(Protocol):
    """A durable checkpoint that takes the place of everything before its end."""

    @property
    def end_offset(self) -> int:
        """Exclusive."""

    @property
    def epoch(self) -> int:
        """Epoch of the last batch it covers."""

    @property
    def path(self) -> str:
        """The checkpoint file."""

    def read(self) -> bytes:
        """The whole file."""

    def manifest(self) -> CheckpointManifest | None:
        """The counts of its writer; None when it has no manifest, as Kafka's have none."""


class QuorumListener(Protocol):
    """The program behind the quorum: it is told in order, on the loop thread. Raising is a fatal fault."""

    def on_commit(self, batches: CommittedBatches) -> None:
        """The next batches are committed: dense, each once, control batches included."""

    def on_snapshot(self, reader: SnapshotReader) -> None:
        """Forget all state and start from this checkpoint; commits go on at its end."""

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """``leader_id`` leads ``epoch``. The own leadership is announced once all before its first batch was handed
        over.
        """


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """A voter as this node sees it."""

    node_id: int
    is_connected: bool
    is_voter: bool
    #: Exclusive end of what it has acknowledged as durable; None where it has not answered in this epoch, or this node
    #: does not lead.
    acknowledged_end: int | None
    #: Seconds since it last answered; None where this node does not lead.
    last_contact_age: float | None
    #: Seconds since it last had everything; None where it never did in this epoch, or this node does not lead.
    caught_up_age: float | None
    #: (end offset, bytes received) of the checkpoint that it is taking.
    checkpoint: tuple[int, int] | None
    #: It has no vote, and gets none before these have answered the leader. Empty where this node does not lead.
    waits_for: tuple[int, ...] = ()
    #: In which messages go to it and come from it; None where no connection stands.
    message_version: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """One node's view of the quorum."""

    node_id: int
    epoch: int
    leader_id: int | None
    is_voter: bool
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    durable_end: int
    applied_end: int
    peers: tuple[PeerStatus, ...]
    #: What keeps this node from leading, None when nothing that it knows of does.
    hindrance: str | None
