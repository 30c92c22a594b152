"""The follower's side: a leader's messages become the library's, its answers become ours.

What the library sees is checked first: the batches are whole, valid and dense; the commit point is clamped to what is
known to match. What it answers is clamped to what is durable, and sent again when more is.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final

from quorate.metadata_log.batches.batch_run import BatchRun, split_run
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.elections.membership import Membership
from quorate.quorum.errors import FatalFault, ProtocolError
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import Append, AppendConflict, AppendReply, CheckpointOffer, Commit
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.storage.fitness import Fitness
from quorate.quorum.storage.leader_change import voters_in

#: An index and an epoch that match no entry: what the library is given where no entry ends at the leader's prev_end.
_NO_INDEX: Final = 1 << 60
_NO_EPOCH: Final = -1


@dataclass(slots=True)
class Following:
    """The knowledge of this node about the leader it follows. Void in every other epoch."""

    leader: int
    epoch: int
    #: Last round heard.
    round: int
    #: The own log equals the leader's up to here (exclusive).
    matched_end: int
    #: Durable end that the leader was told.
    told_end: int
    #: Whether an answer to ``round`` is due.
    is_reply_due: bool = False
    #: Whether entries were not taken for want of room before the disk; the leader must send them again.
    is_held_up: bool = False


class Follower:
    """Handles Append and Commit, and owes the leader acknowledgements."""

    def __init__(
        self,
        core: RaftCore,
        journal: LogJournal,
        log: MetadataLog,
        outbox: Outbox,
        membership: Membership,
        fitness: Fitness,
    ) -> None:
        self._core = core
        self._journal = journal
        self._log = log
        self._outbox = outbox
        self._membership = membership
        self._fitness = fitness
        self.following: Following | None = None
        #: The library's answer to the message it is being given.
        self._answer: dict[str, Any] | None = None

    def on_append(self, peer: int, message: Append) -> None:
        """A heartbeat or batches from the leader of the current epoch or of a higher one.

        Raises:
            ProtocolError: a batch is damaged, or contradicts what this node has; nothing was taken in.
        """
        entries = self._entries(message)
        journal = self._journal
        prev_index = journal.index_of_end(message.prev_end)
        if prev_index is not None:
            journal.check_against(prev_index, message.prev_epoch, entries)
        if self._fitness.is_full and (entries is not None or prev_index is None):
            self._hold_up(peer, message)
            return
        self._give(peer, message, prev_index, entries)
        answer = self._answer
        following = self._follow(peer, message.epoch, message.round)
        if answer is None:
            raise FatalFault(f"the library did not answer an append of epoch {message.epoch}")
        if not answer["success"]:
            hint = journal.conflict_hint(message.prev_end)
            is_voter = self._membership.is_voter
            self._outbox.put(peer, AppendConflict(message.epoch, message.round, hint, is_voter))
            return
        matched_end = message.prev_end if entries is None else entries.ends[-1]
        self.matched(following, matched_end)
        self._membership.leader_reported(message.epoch, peer, message.high_watermark, is_vouched=message.is_vouched)

    def on_commit(self, peer: int, message: Commit) -> None:
        """The commit point moved. Taken only as far as the log is known to match."""
        following = self.following
        if following is None or (following.leader, following.epoch) != (peer, message.epoch):
            return
        index = self._journal.index_of_end(following.matched_end)
        if index is None:
            return
        heartbeat = Append(
            message.epoch,
            following.round,
            following.matched_end,
            self._journal.epoch_of(index),
            message.high_watermark,
            b"",
            (),
            is_vouched=False,
        )
        self._give(peer, heartbeat, index, None)

    def _hold_up(self, peer: int, message: Append) -> None:
        """Hear the leader and take nothing: too much waits for the disk. The leader sends so much and then waits."""
        self.on_offer_heard(peer, message.epoch, message.round)
        assert self.following is not None
        self.following.is_held_up = self.following.is_reply_due = True

    def on_offer_heard(self, peer: int, epoch: int, round_: int) -> None:
        """A checkpoint offer is a heartbeat that says nothing of the log; so is a message that is not taken."""
        self._core.receive(peer, {"type": "append_entries", "term": epoch, "commit_index": 0, "entries": []})
        self._follow(peer, epoch, round_)

    def needs_offered(self, offer: CheckpointOffer) -> bool:
        """Whether the offered checkpoint is to be taken. If the log continues from there, or is ahead: only told."""
        if not self._log.holds(offer.end_offset, offer.last_epoch) and offer.end_offset > self._journal.commit_end:
            return True
        self.matched_checkpoint(offer.end_offset, offer.last_epoch)
        return False

    def matched_checkpoint(self, end_offset: int, epoch: int) -> None:
        """The log holds an offered checkpoint's end, or was committed beyond it: the leader may go on from there."""
        following = self.following
        if following is not None:
            self.matched(following, end_offset if self._log.holds(end_offset, epoch) else self._journal.commit_end)

    def library_answered(self, message: dict[str, Any]) -> None:
        """The library answers the message it is being given."""
        self._answer = message

    def matched(self, following: Following, matched_end: int) -> None:
        """The log is known to equal the leader's up to ``matched_end``; the leader is owed an answer."""
        following.matched_end = max(following.matched_end, matched_end)
        following.is_reply_due = True

    def send_reply(self) -> None:
        """Answer the last round, clamped to what is durable; also when only the durable end moved."""
        following = self.following
        if following is None or following.epoch != self._core.epoch or self._core.leader_id != following.leader:
            self.following = None
            return
        if following.is_held_up and self._fitness.is_relieved:
            following.is_held_up = False
            hint, is_voter = following.matched_end, self._membership.is_voter
            self._outbox.put(following.leader, AppendConflict(following.epoch, following.round, hint, is_voter))
        acked_end = min(following.matched_end, self._durable_end())
        if not following.is_reply_due and acked_end <= following.told_end:
            return
        following.is_reply_due = False
        following.told_end = acked_end
        reply = AppendReply(
            following.epoch, following.round, following.matched_end, acked_end, self._membership.is_voter
        )
        self._outbox.put(following.leader, reply)

    # --- inside --------------------------------------------------------------------------------------

    def _durable_end(self) -> int:
        return self._log.durable_end

    def _follow(self, leader: int, epoch: int, round_: int) -> Following:
        following = self.following
        if following is None or (following.leader, following.epoch) != (leader, epoch):
            # Everything committed is in every later leader's log, so it is the least that matches.
            known_end = self._journal.commit_end
            told_end = min(known_end, self._durable_end())
            following = self.following = Following(leader, epoch, round_, known_end, told_end)
        following.round = max(following.round, round_)
        return following

    def _entries(self, message: Append) -> BatchRun | None:
        """The batches in the message, None when it has none.

        Raises:
            ProtocolError: a batch is damaged, a control batch says nothing, or they do not follow each other.
        """
        if not message.batches:
            return None
        try:
            run = split_run(message.batches, message.prev_end, message.prev_epoch, message.epoch)
            if run.has_control:
                for batch in run.batches:
                    voters_in(batch)
        except StorageError as error:
            raise ProtocolError(f"append of epoch {message.epoch}: {error}") from error
        return run

    def _give(self, peer: int, message: Append, prev_index: int | None, entries: BatchRun | None) -> None:
        """Translate to the library's indexes, which are this process's own."""
        has_prev = prev_index is not None
        index = _NO_INDEX if prev_index is None else prev_index
        commit_index = self._commit_index(message, index, entries) if has_prev else 0
        self._answer = None
        self._core.receive(
            peer,
            {
                "type": "append_entries",
                "term": message.epoch,
                "commit_index": commit_index,
                "prevLogIdx": index,
                "prevLogTerm": message.prev_epoch if has_prev else _NO_EPOCH,
                # The library looks at the index and the epoch of the last one only, and passes it on to the journal.
                "entries": [] if entries is None else [(entries, index + len(entries), entries.epochs[-1])],
            },
        )

    def _commit_index(self, message: Append, prev_index: int, entries: BatchRun | None) -> int:
        """The last entry at or below the leader's commit point *that is known to match*: never beyond this message.

        The library would clamp to the end of the own log, of which nothing is known behind the message.
        """
        high_watermark = message.high_watermark
        if high_watermark <= message.prev_end:
            return self._journal.index_at_or_below(high_watermark)
        return prev_index + (bisect_right(entries.ends, high_watermark) if entries is not None else 0)
