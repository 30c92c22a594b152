"""Delivery of committed entries to the listener, and of the checkpoints that take their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.checkpoints.own_checkpoints import Checkpoint, OwnCheckpoints
from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import InvalidCheckpointOffset
from quorate.quorum.host import CommittedBatches, Host, QuorumListener
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.metrics import QuorumMetrics
from quorate.quorum.storage.leader_change import VoterHistory

#: Of one turn at most: a standby takes some milliseconds for them, and who is served by its loop waits.
RECORDS_DELIVERED_MAX: Final = 8_192
BATCHES_DELIVERED_MAX: Final = 64


class Delivery:
    """The position of the listener. It is handed every committed batch once, in order, or a checkpoint instead."""

    def __init__(
        self,
        config: QuorumConfig,
        core: RaftCore,
        journal: LogJournal,
        log: MetadataLog,
        checkpoints: OwnCheckpoints,
        voters: VoterHistory,
        listener: QuorumListener,
        host: Host,
        metrics: QuorumMetrics,
    ) -> None:
        self._config = config
        self._core = core
        self._journal = journal
        self._log = log
        self._checkpoints = checkpoints
        self._voters = voters
        self._listener = listener
        self._host = host
        self._metrics = metrics
        #: Highest raft index handed over.
        self.index = core.applied_index

    @property
    def end_offset(self) -> int:
        """Exclusive end of what was handed over."""
        return self._journal.end_of(self.index)

    def next_time_ms(self) -> int:
        """The time of a batch to be appended: now, or that of the last one in the log or the checkpoint before it.

        So times never fall, also where the clock of the leader before was ahead.
        """
        newest = self._checkpoints.newest()
        covered = 0 if newest is None else newest.info.last_contained_timestamp
        return max(self._host.wall_ms(), self._journal.last_time_ms(), covered)

    def begin(self) -> None:
        """Hand over the newest checkpoint, if there is one."""
        newest = self._checkpoints.newest()
        if newest is not None:
            self._take(newest)

    def deliver(self) -> None:
        """Hand over what the library applied; the rest, if it is too much for one turn, in the next."""
        if self._core.applied_index > self.index:
            batches = CommittedBatches(self._journal, self.index + 1, self._last_of_turn())
            self.index += len(batches)
            self._metrics.committed_batches += len(batches)
            self._listener.on_commit(batches)
        if self._core.commit_index > self.index:
            self._host.request_pump()

    def _last_of_turn(self) -> int:
        """The last of the applied entries that one turn hands over: the first of them, however large it is."""
        last = min(self._core.applied_index, self.index + BATCHES_DELIVERED_MAX)
        end_max = self.end_offset + RECORDS_DELIVERED_MAX
        while last > self.index + 1 and self._journal.end_of(last) > end_max:
            last -= 1
        return last

    def install(self, received: Checkpoint | None) -> Checkpoint | None:
        """Start from a checkpoint that arrived, if it is ahead of everything here; only ever forward."""
        # What is applied will be handed over out of the log.
        if received is None or received.end_offset <= self._journal.end_of(self._core.applied_index):
            return None
        if not self._log.holds(received.end_offset, received.epoch) and received.end_offset <= self._journal.commit_end:
            return None
        self._journal.install_checkpoint(received.end_offset, received.epoch)
        self._metrics.checkpoints_installed += 1
        self._take(received)
        return received

    def write_checkpoint(
        self,
        end_offset: int,
        content: CheckpointContent,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """See ``QuorumNode.write_checkpoint``."""
        epoch = self._log.epoch_at(end_offset)
        if epoch is None or not self._log.start_offset < end_offset <= self.end_offset:
            raise InvalidCheckpointOffset(end_offset, self._log.start_offset, self.end_offset)

        def written(error: StorageError | None) -> None:
            if error is None:
                start = self._checkpoints.retire(
                    self._log, self._host.wall_ms(), self._host.now(), self._config.retention
                )
                self._journal.delete_prefix(min(start, self.end_offset))
            done(error)
            self._host.request_pump()

        self._checkpoints.write(CheckpointId(end_offset, epoch), content, written)

    def _take(self, checkpoint: Checkpoint) -> None:
        index = self._journal.index_of_end(checkpoint.end_offset)
        assert index is not None, "a checkpoint that is taken is the log's start or within it"
        self._core.checkpoint_installed(index)
        self.index = self._core.applied_index
        self._voters.note_checkpoint(checkpoint.end_offset, checkpoint.epoch, self._checkpoints.voters_in(checkpoint))
        self._listener.on_snapshot(checkpoint)
