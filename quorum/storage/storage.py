"""A node's state on disk: its log, its right to vote, its checkpoints. Opened before the loop starts."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.metadata_log.checkpoints.checkpoints import CheckpointStore
from quorate.metadata_log.directory.quorum_state import QuorumState, QuorumStateStore
from quorate.metadata_log.disk import Disk
from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.log.quarantine import set_aside
from quorate.metadata_log.log.segment_log import Damage, LogConfig, MetadataLog
from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import BatchTooLarge
from quorate.quorum.storage.votes import VoteState


@dataclass(frozen=True, slots=True)
class NodeStorage:
    """An opened log directory (``.../__cluster_metadata-0``)."""

    disk: Disk
    directory: str
    log: MetadataLog
    votes: VoteState
    checkpoints: CheckpointStore
    #: What was found damaged and set aside, in that order. With any of it the node is a non-voter.
    damage: tuple[Damage, ...]
    #: The names under which it is kept, in the same directory.
    set_aside: tuple[str, ...]
    #: Why the election state could not be read, None when it could or was not there.
    state_damage: str | None

    @classmethod
    def open(cls, disk: Disk, directory: str, config: QuorumConfig, log_config: LogConfig) -> NodeStorage:
        """Recover the log and the election state. Blocking.

        A damaged log is set aside together with the right to vote, and the node begins as a non-voter with what is
        sound. A directory without a readable election state belongs to a non-voter too.

        Raises:
            OSError: the disk failed.
            BatchTooLarge: the log, sound as it is, holds what cannot be replicated.
        """
        damage: list[Damage] = []
        aside: list[str] = []
        log = MetadataLog.open(disk, directory, log_config)
        while log.damage is not None:
            # More than one thing may be wrong, and only the first shows: the mark says nothing of the segments.
            log.close()
            damage.append(log.damage)
            names = set_aside(disk, directory, log.damage)
            assert names, "every damage lies in the mark or in a segment"
            aside += names
            log = MetadataLog.open(disk, directory, log_config)
        try:
            largest = log.largest()
            if largest is not None and largest.size > BATCH_BYTES_MAX:
                raise BatchTooLarge(largest.base_offset, largest.size)
            store = QuorumStateStore(disk, directory)
            stored, state_damage = _load(store)
        except BaseException:
            log.close()
            raise
        votes = VoteState(store, stored, log.last_epoch, config)
        checkpoints = CheckpointStore(disk, directory, log.checkpoints_at_open)
        return cls(disk, directory, log, votes, checkpoints, tuple(damage), tuple(aside), state_damage)

    def close(self) -> None:
        """Give the handles back. No disk group may be out."""
        self.log.close()


def _load(store: QuorumStateStore) -> tuple[QuorumState | None, str | None]:
    """The election state, or why it cannot be read."""
    try:
        return store.load(), None
    except CorruptState as error:
        return None, str(error)
