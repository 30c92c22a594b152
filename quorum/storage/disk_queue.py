"""One ordered queue of disk work, one piece at a time.

A group is: the epoch and vote if they changed, then one flush of all that the log has staged (appends,
truncations). While a group runs the next one gathers, so one sync covers everything that queued up behind the last.
Epoch and vote go first: the log on disk is never ahead of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.log.segment_log import FlushJob, MetadataLog
from quorate.quorum.errors import DiskFailed
from quorate.quorum.metrics import QuorumMetrics
from quorate.quorum.storage.votes import VoteJob, VoteState

#: Copied to the page cache in some 50 µs.
_SHORT_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class DiskGroup:
    """The work of one trip to the disk thread. A failure anywhere in it is the end of the node."""

    vote: VoteJob | None
    flush: FlushJob | None

    @property
    def path(self) -> str:
        """The file of the log that it writes; empty where it writes a vote only."""
        return "" if self.flush is None else self.flush.path

    @property
    def is_short(self) -> bool:
        """Whether it is one small write and its sync: on a quick disk the loop thread may run it itself."""
        return self.vote is None and self.flush is not None and self.flush.written_bytes <= _SHORT_BYTES

    def run(self) -> Iterator[None]:
        """See ``DiskJob.run``."""
        if self.vote is not None:
            yield from self.vote.run()
        if self.flush is not None:
            yield from self.flush.run()


class DiskQueue:
    """Gathers groups, hands them out, and takes notice when they are done."""

    def __init__(
        self,
        log: MetadataLog,
        votes: VoteState,
        run_group: Callable[[DiskGroup], bool],
        now: Callable[[], float],
        metrics: QuorumMetrics,
    ) -> None:
        """``run_group`` runs a group and returns True; or starts it elsewhere and returns False.

        In the latter case ``done`` must be called with it on the loop thread afterwards.
        """
        self._log = log
        self._votes = votes
        self._run_group = run_group
        self._metrics = metrics
        self._now = now
        self._running: DiskGroup | None = None
        #: When it was handed out.
        self._began = 0.0
        #: Seconds that the last group took; 0 while one is out.
        self.last_took = 0.0

    def waited(self, now: float) -> float:
        """Seconds for which the group that is out has been out; 0 when none is."""
        return 0.0 if self._running is None else now - self._began

    def kick(self) -> bool:
        """Start a group if none is out and there is work. Returns whether one ran to its end in this call.

        Raises:
            DiskFailed: it ran in this call, and the disk failed.
        """
        if self._running is not None:
            return False
        vote = self._votes.make_job()
        flush = self._log.flush_job()
        if vote is None and flush is None:
            return False
        group = self._running = DiskGroup(vote, flush)
        self._began = self._now()
        self.last_took = 0.0
        self._metrics.disk_groups += 1
        try:
            is_done = self._run_group(group)
        except OSError as error:
            raise DiskFailed(error) from error
        if is_done:
            self.done(group)
        return is_done

    def done(self, group: DiskGroup) -> None:
        """A group ran to its end: everything in it is durable."""
        assert group is self._running, "groups are handed out one at a time"
        self._running = None
        self.last_took = self._now() - self._began
        if group.vote is not None:
            self._votes.job_done(group.vote)
        if group.flush is not None:
            self._log.job_done(group.flush)
