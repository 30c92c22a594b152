"""This node's right to vote: a voter that lost its memory must not vote until it has relearned all it had promised.

A directory that was made later than its cluster, or that was damaged, has no election state: its node is a
*non-voter*. No vote, no Pre-Vote, no candidacy; not counted for the commit point, nor for a read. It is a voter
again once its log is durable up to a commit point that a *vouched* leader reported in its own epoch, and votes only
in epochs above. Commit points never fall, so that one is not below what was committed when this node came back.

Vouched: every other node has answered that leader since this one joined; see ``vouching``. Without it a deposed leader
that nobody has told yet could restore this node to a point before what it acknowledged to that leader's successor,
and a candidate that still counts on this node's forgotten vote could win beside one that this node votes for anew.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.storage.votes import VoteState


class Membership:
    """The non-voter rule. ``is_voter`` is also what acknowledgements say of themselves."""

    def __init__(self, log: MetadataLog, votes: VoteState, abstain: Callable[[int, int], None]) -> None:
        """``abstain(epoch, leader)`` uses up the vote of an epoch."""
        self._log = log
        self._votes = votes
        self._abstain = abstain
        #: (epoch, leader, commit point) that this node has to reach; None while no leader has vouched.
        self._goal: tuple[int, int, int] | None = None
        #: Generation of the vote state that restores the right to vote.
        self._pending_generation: int | None = None
        self.is_voter = votes.has_file

    def leader_reported(self, epoch: int, leader: int, high_watermark: int, *, is_vouched: bool) -> None:
        """A leader's commit point, known to match here. Worth something once it lies in the leader's own epoch."""
        if self.is_voter or not is_vouched or (self._goal is not None and self._goal[0] == epoch):
            return
        if self._log.end_offset >= high_watermark and self._log.epoch_at(high_watermark) == epoch:
            self._goal = (epoch, leader, high_watermark)

    def check(self, current_epoch: int) -> None:
        """Become a voter if the goal is durable here, and the right to vote after it."""
        if self.is_voter:
            return
        if self._pending_generation is not None:
            self.is_voter = self._votes.durable_generation >= self._pending_generation
            return
        goal = self._goal
        if goal is None or goal[0] != current_epoch or self._log.durable_end < goal[2]:
            return
        self._abstain(goal[0], goal[1])
        self._votes.grant_right()
        self._pending_generation = self._votes.staged_generation
