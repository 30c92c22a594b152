"""Votes and Pre-Votes: messages in, the library's bookkeeping and the election timers behind them."""

from __future__ import annotations

import math

from quorate.metadata_log.limits import EPOCH_MAX
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.elections.elections import Elections, LogPosition, PreVoteAnswer
from quorate.quorum.elections.membership import Membership
from quorate.quorum.errors import FatalFault
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import EndEpoch, PreVote, PreVoteReply, StaleEpoch, Vote, VoteReply
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.storage.fitness import Fitness


class Ballots:
    """One voter's part in elections."""

    def __init__(
        self,
        node_id: int,
        peers: tuple[int, ...],
        core: RaftCore,
        log: MetadataLog,
        journal: LogJournal,
        elections: Elections,
        membership: Membership,
        outbox: Outbox,
        fitness: Fitness,
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._core = core
        self._log = log
        self._journal = journal
        self._elections = elections
        self._membership = membership
        self._outbox = outbox
        self._fitness = fitness
        #: Who voted for this node in the current epoch, itself included. The library counts replies, not voters.
        self.granters: set[int] = set()
        self._is_vote_granted = False

    # --- asking --------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Let the timers of a voter that does not lead act."""
        if not self._membership.is_voter:
            return
        asked = self._elections.tick(now)
        if asked is not None and self._fitness.may_stand(now):
            own = self._own_position()
            question = PreVote(self._core.epoch + 1, asked.round, own.last_epoch, own.log_end)
            for peer in self._peers:
                self._outbox.put(peer, question)

    def next_deadline(self) -> float:
        """The time at which ``tick`` has something to do, if nothing happens before."""
        return self._elections.next_deadline() if self._membership.is_voter else math.inf

    def may_campaign(self, now: float) -> bool:
        """The library's election condition: only after a round was won, on a sound disk, and never as a non-voter.

        Raises:
            FatalFault: no epoch is left.
        """
        if not self._membership.is_voter or not self._elections.take_permission() or not self._fitness.may_stand(now):
            return False
        if self._core.epoch >= EPOCH_MAX:
            raise FatalFault(f"no epoch is left above {self._core.epoch}: the quorum must be rebuilt")
        self._elections.campaign_started(now)
        self.granters = {self._node_id}
        return True

    def ask_for_vote(self, peer: int) -> None:
        """The library stands for election and asks a voter."""
        own = self._own_position()
        self._outbox.put(peer, Vote(self._core.epoch, own.last_epoch, own.log_end))

    def on_pre_vote_reply(self, peer: int, reply: PreVoteReply, now: float) -> None:
        """An answer to the open round. A refusal may show that this node is an epoch behind.

        It follows then, unless its leader lives: who is ahead may have the shorter log, and so cannot win either. That
        a leader of the own epoch is known says nothing, for it may have died.
        """
        if self._core.is_leader:
            return
        is_answer = reply.round == self._elections.round
        if is_answer and reply.epoch > self._core.epoch and not self._elections.has_living_leader(now):
            self._core.adopt_epoch(reply.epoch)
        answer = PreVoteAnswer(reply.is_granted, reply.has_leader)
        self._elections.on_pre_vote_reply(peer, reply.round, answer, now)

    def on_vote_reply(self, peer: int, reply: VoteReply, now: float) -> None:
        """A vote counts once for each voter, and only in the epoch it was given in."""
        if not reply.is_granted:
            self._core.adopt_epoch(reply.epoch)
            if self._core.is_candidate:
                self._elections.vote_refused(peer, now)
        elif self._core.is_candidate and reply.epoch == self._core.epoch and peer not in self.granters:
            self.granters.add(peer)
            self._core.receive(peer, {"type": "response_vote", "term": reply.epoch})

    # --- answering -----------------------------------------------------------------------------------

    def on_pre_vote(self, peer: int, question: PreVote, now: float) -> None:
        """Would this node vote for the sender? Refusals are answered too, so that nobody waits for them."""
        core = self._core
        self._elections.note_log_ends([(peer, question.log_end), (self._node_id, self._log.end_offset)])
        if not self._membership.is_voter or question.epoch <= core.epoch or core.is_leader:
            answer = PreVoteAnswer(is_granted=False, has_leader=core.is_leader)
        else:
            candidate = LogPosition(question.last_epoch, question.log_end)
            answer = self._elections.on_pre_vote(candidate, self._own_position(), now)
        reply = PreVoteReply(core.epoch, question.round, answer.is_granted, answer.has_leader)
        self._outbox.put(peer, reply)

    def on_vote(self, peer: int, request: Vote, now: float) -> None:
        """The library decides; a non-voter does not even ask it. The reply leaves when the vote is durable."""
        self._is_vote_granted = False
        if self._membership.is_voter:
            self._core.receive(
                peer,
                {
                    "type": "request_vote",
                    "term": request.epoch,
                    "last_log_term": request.last_epoch,
                    "last_log_index": self._comparable_index(request.log_end),
                },
            )
        if self._is_vote_granted:
            self._elections.vote_granted(now)
        self._outbox.put(peer, VoteReply(self._core.epoch, self._is_vote_granted))

    def library_granted(self) -> None:
        """The library votes for the sender of the request it is being given."""
        self._is_vote_granted = True

    # --- the leader says -----------------------------------------------------------------------------

    def on_end_epoch(self, peer: int, message: EndEpoch, now: float) -> None:
        """The leader of the current epoch stopped leading."""
        if message.epoch == self._core.epoch and self._core.leader_id == peer and not self._core.is_leader:
            self._core.step_down()
            self._elections.leader_stopped(now)

    def on_stale_epoch(self, message: StaleEpoch) -> None:
        """A follower is in a higher epoch: adopt it, or it could never follow again."""
        self._core.adopt_epoch(message.epoch)

    # --- inside --------------------------------------------------------------------------------------

    def _own_position(self) -> LogPosition:
        return LogPosition(self._log.last_epoch, self._log.end_offset)

    def _comparable_index(self, log_end: int) -> int:
        """An index that compares to the own last one as the candidate's log end does to the own."""
        own_end = self._log.end_offset
        return self._journal.last_index + (log_end > own_end) - (log_end < own_end)
