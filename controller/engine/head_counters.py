"""Counters fed by the active controller's own records: leader elections by kind, and commit times.

Counted is what has committed while this node was active: what an election undid was no election. Costs a look at the
type of each record that is staged, and a clock reading and a histogram's entry for each commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.metadata_version import NO_EPOCH_BUMP_ON_SHRINK_LEVEL
from quorate.controller.engine.counters import Histogram
from quorate.controller.engine.event_queue import EventQueue
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.metadata_log.records.records import PartitionChangeRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

#: Event -> the strategy of Kafka's older controller that its elections belong to; all others are ``offline``: a leader
#: was lost, or a broker that may lead came back.
ELECTION_KINDS: Final = {
    "alter_partition": "reassignment",
    "alter_partition_reassignments": "reassignment",
    "balance_leaders": "preferred",
    "controlled_shutdown": "controlled_shutdown",
    "elect_leaders": "preferred",
}
KINDS: Final = ("controlled_shutdown", "offline", "preferred", "reassignment")
#: Commits whose times are entered into the histogram together.
COMMITS_FOLDED: Final = 512
_RECOVERING: Final = 1


class Elected(NamedTuple):
    """Partitions that got another leader."""

    #: All of them.
    partitions: int = 0
    #: Those whose leader may lack data: nobody was in sync or eligible.
    unclean: int = 0
    #: Those whose leader was eligible, and not in sync.
    from_eligible: int = 0
    #: Of the unclean ones, those whose leader is the last known one, back again.
    last_known: int = 0


@dataclass(slots=True)
class HeadCounts:
    """Counted since the process started, while it was active."""

    #: Elections by kind.
    elections: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    unclean_elections: int = 0
    elections_from_eligible: int = 0
    last_known_elections: int = 0
    #: By kind: from the beginning of an event that elects until its commit; a pass has one for each slice.
    election_times: dict[str, Histogram] = field(default_factory=lambda: {kind: Histogram() for kind in KINDS})
    #: From the beginning of a batch's last event until its commit.
    commit_times: Histogram = field(default_factory=Histogram)

    def copy(self) -> HeadCounts:
        """As of now."""
        return replace(
            self,
            elections=self.elections.copy(),
            election_times={kind: times.copy() for kind, times in self.election_times.items()},
            commit_times=self.commit_times.copy(),
        )


class HeadWatch:
    """Is told by the head what becomes of its records. Owned by the controller's loop thread; outlives the heads."""

    def __init__(self, now_ms: Callable[[], float], events: EventQueue) -> None:
        self._counts = HeadCounts()
        #: What commits took, not in the histogram yet: a list's entry is a tenth of a histogram's.
        self.commits_ms: list[float] = []
        self.now_ms = now_ms
        self.events = events
        #: (exclusive end, time, kind, what it elected) of each decision that elected somebody and has not committed.
        self._elected: deque[tuple[int, float, str, Elected]] = deque()

    @property
    def counts(self) -> HeadCounts:
        """Everything that was counted up to now."""
        self.fold()
        return self._counts

    def fold(self) -> None:
        """Enter what commits took into the histogram."""
        taken, self.commits_ms = self.commits_ms, []
        if taken:
            self._counts.commit_times.note_all(np.array(taken) / 1000)

    @property
    def has_elected(self) -> bool:
        """Whether anything waits for ``committed``."""
        return bool(self._elected)

    def begun(self) -> None:
        """A head begins: nothing of the one before will be heard of again."""
        self._elected.clear()

    def staged(self, before: MetadataImage, items: Sequence[BatchItem], end_offset: int) -> None:
        """Records, which end at ``end_offset``, were replayed onto the image ``before``."""
        # By exact type, and the usual case first: this is done for every event.
        for item in items:
            if type(item) is VersionedRecord:
                record = item.record
                if type(record) is not PartitionChangeRecord:
                    continue
                elected = elected_by_record(before, record)
            elif type(item) is PartitionChangeRun:
                elected = elected_by_run(before, item)
            else:
                continue
            if elected.partitions:
                kind = ELECTION_KINDS.get(self.events.running, "offline")
                self._elected.append((end_offset, self.events.began_ms, kind, elected))

    def committed(self, end_offset: int, now_ms: float) -> None:
        """Everything below ``end_offset`` has committed."""
        counts = self._counts
        while self._elected and self._elected[0][0] <= end_offset:
            _, at_ms, kind, elected = self._elected.popleft()
            counts.elections[kind] += elected.partitions
            counts.unclean_elections += elected.unclean
            counts.elections_from_eligible += elected.from_eligible
            counts.last_known_elections += elected.last_known
            counts.election_times[kind].note((now_ms - at_ms) / 1000)


def elected_by_record(before: MetadataImage, record: PartitionChangeRecord) -> Elected:
    """The elections in one record; a record that names the leader there was only raises its epoch."""
    row = None if record.leader < 0 else before.partitions.row(record.topic_id, record.partition_id)
    if row is None:
        return Elected()
    partition = before.partitions.partition(row)
    if record.leader == partition.leader:
        return Elected()
    is_unclean = record.leader_recovery_state == _RECOVERING
    is_last_known = is_unclean and partition.last_known_elr == (record.leader,)
    return Elected(1, int(is_unclean), int(record.leader in partition.elr), int(is_last_known))


def elected_by_run(before: MetadataImage, run: PartitionChangeRun) -> Elected:
    """The elections in a run."""
    leaders = run.leader
    chosen = np.flatnonzero(leaders >= 0) if leaders is not None else ()
    if leaders is None or not len(chosen):
        return Elected()
    has_moved = np.ones(len(chosen), np.bool_)
    from_eligible = 0
    raises_epoch_only = run.replicas is not None or before.features.metadata_version < NO_EPOCH_BUMP_ON_SHRINK_LEVEL
    leaves_elr = run.eligible_leader_replicas is not None and run.isr is not None and run.isr.shape[1] == 1
    if raises_epoch_only or leaves_elr:
        # Only then does the record not say it all: who led, and who was eligible, is looked up.
        columns = before.partitions.gather(before.partitions.rows_for(run.topic_ids[chosen], run.partition_ids[chosen]))
        has_moved = columns.leaders != leaders[chosen]
        is_eligible = (columns.elr[:, None] & _slot_bits(columns.width)) != 0
        from_eligible = int(((columns.slots == leaders[chosen][:, None]) & is_eligible).any(axis=1).sum())
    states = run.leader_recovery_state
    unclean = last_known = 0
    if states is not None:
        is_unclean = (states[chosen] == _RECOVERING) & has_moved
        unclean = int(np.count_nonzero(is_unclean))
        last_known = _elected_as_last_known(before, run, chosen[is_unclean])
    return Elected(int(np.count_nonzero(has_moved)), unclean, from_eligible, last_known)


def _elected_as_last_known(before: MetadataImage, run: PartitionChangeRun, unclean: NDArray[np.intp]) -> int:
    """The number of these changes that elect the only last known leader that their partition had."""
    if run.leader is None or not len(unclean):
        return 0
    columns = before.partitions.gather(before.partitions.rows_for(run.topic_ids[unclean], run.partition_ids[unclean]))
    is_leader = columns.slots == run.leader[unclean][:, None]
    is_known = (columns.last_known_elr[:, None] & _slot_bits(columns.width)) != 0
    return int(np.count_nonzero((is_leader == is_known).all(axis=1)))


def _slot_bits(width: int) -> NDArray[np.uint64]:
    bits: NDArray[np.uint64] = np.uint64(1) << np.arange(width, dtype=np.uint64)
    return bits
