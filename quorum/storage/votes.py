"""The epoch and vote of this node: what it acts on at once, and what of that is durable.

The file is the right to vote (``metadata_log.directory.quorum_state``). A non-voter has none and writes none: it
promises nothing, so its epoch lives in memory until it becomes a voter again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.metadata_log.directory.quorum_state import NOBODY, QuorumState, QuorumStateJob, QuorumStateStore
from quorate.metadata_log.ids import ZERO_UUID
from quorate.quorum.config import QuorumConfig


@dataclass(frozen=True, slots=True)
class VoteJob:
    """Makes one state of epoch and vote durable."""

    generation: int
    job: QuorumStateJob

    def run(self) -> Iterator[None]:
        """See ``DiskJob.run``."""
        return self.job.run()


class VoteState:
    """Epoch and vote. ``generation`` numbers count changes, so that a message can wait for the one it rests on."""

    def __init__(
        self, store: QuorumStateStore, stored: QuorumState | None, log_epoch: int, config: QuorumConfig
    ) -> None:
        """``stored`` is None on a non-voter. ``log_epoch``: the highest epoch in the log or of its checkpoint."""
        self._store = store
        self._directories = {voter.node_id: voter.directory_id for voter in config.voters}
        self._data_version = 1 if config.kraft_version >= 1 else 0
        self.has_file = stored is not None
        self.epoch = log_epoch
        self.voted_id: int | None = None
        if stored is not None and stored.leader_epoch >= log_epoch:
            self.epoch = stored.leader_epoch
            voted = stored.voted_id if stored.voted_id != NOBODY else stored.leader_id
            self.voted_id = None if voted == NOBODY else voted
        self.staged_generation = 0
        self.durable_generation = 0

    def stage(self, epoch: int, voted_id: int | None) -> None:
        """Act on a new epoch or vote at once, and have it written."""
        self.epoch = epoch
        self.voted_id = voted_id
        if self.has_file:
            self.staged_generation += 1

    def grant_right(self) -> None:
        """Write the first file of a node that was a non-voter: with it the node votes, in epochs above this one."""
        self.has_file = True
        self.staged_generation += 1

    def make_job(self) -> VoteJob | None:
        """A job for what is staged, None when all of it is durable."""
        if self.staged_generation == self.durable_generation:
            return None
        voted = self.voted_id
        directory = ZERO_UUID if voted is None or self._data_version == 0 else self._directories.get(voted, ZERO_UUID)
        state = QuorumState(
            leader_epoch=self.epoch,
            voted_id=NOBODY if voted is None else voted,
            voted_directory_id=directory,
            data_version=self._data_version,
            current_voters=tuple(sorted(self._directories)) if self._data_version == 0 else (),
        )
        return VoteJob(self.staged_generation, self._store.write_job(state))

    def job_done(self, job: VoteJob) -> None:
        """Note that all that the job carried is durable."""
        self.durable_generation = job.generation
