"""One ordered queue of disk work, one piece at a time, off the loop thread.

A group is: the epoch and vote if they changed, then one flush of all that the log has staged (appends,
truncations). While a group runs the next one gathers, so one sync covers everything that queued up behind the last.
Epoch and vote go first: the log on disk is never ahead of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metadata_log.segment_log import FlushJob, MetadataLog
from quorum.votes import VoteJob, VoteState


@dataclass(frozen=True, slots=True)
class DiskGroup:
    """What one trip to the disk thread does. A failure anywhere in it is the end of the node."""

    vote: VoteJob | None
    flush: FlushJob | None

    def run(self) -> Iterator[None]:
        """See ``DiskJob.run``."""
        if self.vote is not None:
            yield from self.vote.run()
        if self.flush is not None:
            yield from self.flush.run()


class DiskQueue:
    """Gathers groups, hands them out, and takes notice when they are done."""

    def __init__(self, log: MetadataLog, votes: VoteState, run_group: Callable[[DiskGroup], None]) -> None:
        """``run_group`` starts a group elsewhere; ``done`` must be called with it on the loop thread afterwards."""
        self._log = log
        self._votes = votes
        self._run_group = run_group
        self._running: DiskGroup | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a group is out."""
        return self._running is not None

    def kick(self) -> None:
        """Start a group if none is out and there is work."""
        if self._running is not None:
            return
        vote = self._votes.make_job()
        flush = self._log.flush_job()
        if vote is None and flush is None:
            return
        self._running = DiskGroup(vote, flush)
        self._run_group(self._running)

    def done(self, group: DiskGroup) -> None:
        """A group ran to its end: everything in it is durable."""
        assert group is self._running, "groups are handed out one at a time"
        self._running = None
        if group.vote is not None:
            self._votes.job_done(group.vote)
        if group.flush is not None:
            self._log.job_done(group.flush)
