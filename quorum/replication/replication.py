"""The leader's side: passes over the followers, acknowledgements, the majority's durable end, contact.

The library keeps its own next and match indexes; it is fed matches only, and only what may be committed is visible
to its commit loop. What goes to whom and when is decided here, on events: new entries, replies, a moved commit
point, a due heartbeat, a read that needs a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from quorate.metadata_log.checkpoints.checkpoint_transfer import OfferedCheckpoint
from quorate.quorum.config import QuorumConfig
from quorate.quorum.host import PeerStatus
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import (
    AppendConflict,
    AppendReply,
    CheckpointOffer,
    CheckpointProgress,
    Commit,
)
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.replication.append_messages import AppendMessages
from quorate.quorum.replication.commit_notice import CommitNotice
from quorate.quorum.replication.held_back import HeldBack
from quorate.quorum.replication.progress import FollowerState, Progress
from quorate.quorum.replication.reply_checks import check_round, matched_entries, next_to_try
from quorate.quorum.replication.vouching import Vouching


class OfferSource(Protocol):
    """The source of the checkpoint that is offered to a follower behind the log's start."""

    def offer(self, peer: int, now: float) -> OfferedCheckpoint | None:
        """The checkpoint that can be served to a follower; None while there is none: it is only told of its leader."""

    def received(self, peer: int) -> None:
        """A follower follows the log again."""


class Replication:
    """State of the leader towards its followers. Reset at every election won."""

    def __init__(
        self,
        config: QuorumConfig,
        core: RaftCore,
        journal: LogJournal,
        outbox: Outbox,
        offers: OfferSource,
        notice: CommitNotice,
    ) -> None:
        self._config = config
        self._majority = config.majority
        self._core = core
        self._journal = journal
        self._outbox = outbox
        self._offers = offers
        self._peers = config.peer_ids
        #: Connected peers, and whether each says that it is a voter (and not recovering from a loss of memory).
        self._links: dict[int, bool] = {}
        self.progress: dict[int, Progress] = {}
        #: Number of the last pass that sent anything; the first of an epoch is 1.
        self.round = 0
        self._is_round_wanted = False
        self._vouching = Vouching()
        #: The last entry, and the commit point, that there were at the last pass.
        self._passed_index = self._passed_commit_end = 0
        #: Whether something happened since then that a pass may answer, other than new entries or a moved commit point.
        self._is_pass_due = False
        self._notice = notice
        #: Whether this pass left a follower untold of the commit point, or without entries that are committed.
        self._is_untold = False
        #: Peers in the order they are served: who was the first to answer is the first to be asked.
        self._order = list(self._peers)
        self._held = HeldBack(config.timing.hold_back)
        self._messages = AppendMessages(core, journal)

    # --- life of an epoch ----------------------------------------------------------------------------

    def begin_epoch(self, now: float) -> None:
        """This node was elected: probe everybody with the epoch's first entry."""
        next_index = self._core.first_own_index
        self.round = 0
        self._vouching.begin_epoch()
        self._is_round_wanted = False
        self._is_pass_due = True
        self.progress = {
            peer: Progress(next_index=next_index, contact_at=now, voter_contact_at=now) for peer in self._peers
        }
        for peer, is_voter in self._links.items():
            self.progress[peer].is_voter = is_voter
        self._journal.visible_index = 0
        self._refresh_acknowledged()

    def end_epoch(self) -> None:
        """This node leads no more."""
        self.progress = {}
        self._journal.visible_index = None
        self._held.clear()
        self._notice.pass_ended(is_untold=False)

    def connected(self, peer: int, *, is_voter: bool, has_new_directory: bool) -> None:
        """A connection stands. A peer with another directory than before, or no vote, has acknowledged nothing yet."""
        self._links[peer] = is_voter
        self._is_pass_due = True
        progress = self.progress.get(peer)
        if progress is None:
            return
        progress.forget_undurable()
        if has_new_directory or not is_voter:
            progress.forget_match()
            self._vouching.joined(self.round + 1)
        progress.is_voter = is_voter
        progress.become_probe(max(progress.matched_index + 1, self._core.first_own_index), self.round)

    def disconnected(self, peer: int) -> None:
        """A connection broke; whatever was on it is lost."""
        self._links.pop(peer, None)
        self._is_pass_due = True
        progress = self.progress.get(peer)
        if progress is not None:
            progress.become_probe(progress.matched_index + 1, self.round)

    def peer_status(self, peer: int, now: float, version: int) -> PeerStatus:
        """A voter, for status screens. ``version``: of the messages to it, as long as a connection stands."""
        is_connected, is_voter = peer in self._links, self._links.get(peer, False)
        spoken = version if is_connected else None
        progress = self.progress.get(peer)
        if progress is None:
            return PeerStatus(peer, is_connected, is_voter, None, None, None, None, message_version=spoken)
        return PeerStatus(
            node_id=peer,
            is_connected=is_connected,
            is_voter=progress.is_voter,
            acknowledged_end=progress.acked_end if progress.answered_round else None,
            last_contact_age=now - progress.contact_at,
            caught_up_age=now - progress.caught_up_at if math.isfinite(progress.caught_up_at) else None,
            checkpoint=progress.checkpoint,
            waits_for=() if progress.is_voter else self._vouching.awaited(peer, self.progress),
            message_version=spoken,
        )

    # --- replies -------------------------------------------------------------------------------------

    def on_reply(self, peer: int, reply: AppendReply, now: float) -> bool:
        """A match, and how much of it is durable there. Returns whether something may follow from it.

        Raises:
            ProtocolError: it cannot be so. So with the other replies.
        """
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        found = None if progress is None else matched_entries(peer, reply, self._journal)
        if progress is None or found is None:
            return False
        matched, acked = found
        was_replicating = progress.state is FollowerState.REPLICATE
        self._offers.received(peer)
        progress.matched(matched)
        progress.acknowledged(reply.acked_end, self._journal.end_of(self._journal.last_index), now)
        if acked > progress.acked_index:
            progress.acked_index = acked
            progress.acked_end = reply.acked_end
        is_wanted = progress.acked_index > self._core.commit_index
        if is_wanted and progress.is_voter and self._order[0] != peer:
            self._order.remove(peer)
            self._order.insert(0, peer)
        if not was_replicating or progress.next_index <= self._journal.last_index:
            self._is_pass_due = True
        return is_wanted or self._is_pass_due

    def on_conflict(self, peer: int, reply: AppendConflict, now: float) -> None:
        """No match where the last message began: step back to where the follower points."""
        self._is_pass_due = True
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        if progress is not None and reply.round >= progress.probe_round:
            progress.become_probe(next_to_try(peer, reply, self._journal), self.round)

    def on_checkpoint_progress(self, peer: int, reply: CheckpointProgress, now: float) -> None:
        """The follower is taking the checkpoint: that counts as contact, and as nothing else."""
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        if progress is not None:
            progress.checkpoint_taken(reply.position)

    def _heard(self, peer: int, epoch: int, round_: int, is_voter: bool, now: float) -> Progress | None:
        """The follower's progress if the reply belongs to this epoch; then it must answer a round that there was."""
        progress = self.progress.get(peer)
        if progress is None or epoch != self._core.epoch:
            return None
        check_round(peer, epoch, round_, self.round)
        progress.contact_at = now
        progress.answered_round = max(progress.answered_round, round_)
        progress.is_voter = is_voter
        if is_voter:
            progress.voter_contact_at = now
            progress.echoed_round = max(progress.echoed_round, round_)
        return progress

    # --- what is decided on ----------------------------------------------------------------------------

    def advance(self, durable_end: int, *, counts_itself: bool) -> bool:
        """Show the library what is durable on a majority of voters, this node's own disk included.

        Returns whether that is more than is committed.
        """
        own = self._journal.index_at_or_below(durable_end) if counts_itself else 0
        acked = [own, *(p.acked_index if p.is_voter else 0 for p in self.progress.values())]
        acked.sort(reverse=True)
        visible = self._journal.visible_index = acked[self._majority - 1]
        if visible < self._core.first_own_index:
            return False  # Nothing of this epoch can be committed yet: spare the library a walk over older entries.
        if visible <= self._core.commit_index:
            return False
        for peer, progress in self.progress.items():
            # Not beyond what may be committed: the library would walk there in vain, again and again.
            index = min(progress.acked_index, visible)
            if progress.is_voter and index > progress.fed_index:
                progress.fed_index = index
                self._core.feed_match(peer, index)
        return True

    def has_quorum(self, now: float) -> bool:
        """Whether a majority of voters, this node included, answered recently enough to go on leading.

        Those who do not vote are not counted: with them alone nothing can be committed, nor a read be confirmed.
        """
        oldest = now - self._config.timing.check_quorum_timeout
        return 1 + len([p for p in self.progress.values() if p.voter_contact_at > oldest]) >= self._majority

    def majority_echoed(self) -> int:
        """The highest round that a majority of voters, this node included, has answered."""
        echoed = sorted([p.echoed_round for p in self.progress.values()], reverse=True)
        needed = self._majority - 1
        return self.round if needed == 0 else echoed[needed - 1]

    def want_round(self) -> int:
        """Ask for a pass that reaches every follower; returns the number it will have."""
        if not self._peers:
            return self.round
        self._is_round_wanted = True
        return self.round + 1

    # --- passes --------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether entries were appended since the last pass."""
        return self._journal.last_index > self._passed_index

    @property
    def expects_more(self) -> bool:
        """Whether there are entries that not even the quickest follower has acknowledged."""
        return bool(self._order) and self.progress[self._order[0]].acked_index < self._journal.last_index

    def wants_pass(self, now: float, commit_end: int) -> bool:
        """Whether a pass has anything to send, as far as heartbeats are not due.

        A moved commit point alone waits for entries to go with: see ``CommitNotice``.
        """
        is_asked = self._is_pass_due or self._is_round_wanted
        if is_asked or self.has_news or self._notice.is_due or now >= self._held.until:
            return True
        if commit_end > self._passed_commit_end:
            self._notice.pass_ended(is_untold=bool(self._links))
        return False

    def send_pass(self, now: float, commit_end: int, majority_served: Callable[[], None]) -> None:
        """Send to every connected follower what is new for it.

        ``majority_served()`` is called once: as soon as so many were served that, with this node, they are a majority,
        or else at the end. It is the moment for the own disk. The others get a few new entries later: where all share
        a machine they would take the processor from those that a commit waits for. See ``HeldBack``.
        """
        heartbeat_due = now - self._config.timing.heartbeat_interval
        due_peers = [peer for peer in self._links if self.progress[peer].sent_at <= heartbeat_due]
        if due_peers:
            self._refresh_acknowledged()
        self.round += 1
        has_sent = self._is_untold = False
        needed = self._majority - 1
        for peer in self._order:
            if peer in self._links:
                progress = self.progress[peer]
                is_due = self._is_round_wanted or peer in due_peers
                has_sent |= self._send_to(peer, progress, is_due, now, commit_end, may_hold=needed <= 0 and not is_due)
                if progress.is_voter:
                    needed -= 1
                    if needed == 0:
                        majority_served()
        if needed > 0 or not self._peers:
            majority_served()
        self._is_round_wanted = self._is_round_wanted and bool(self._peers) and not has_sent
        if not has_sent and self._peers:
            self.round -= 1
        self._messages.pass_ended()
        self._passed_index, self._passed_commit_end = self._journal.last_index, commit_end
        self._is_pass_due = False
        self._held.pass_ended(now)
        self._notice.pass_ended(is_untold=self._is_untold)

    def next_deadline(self) -> float:
        """The time at which the next heartbeat, or the next look at the quorum, is due."""
        interval = self._config.timing.heartbeat_interval
        due = [self._held.until, *(self.progress[peer].sent_at + interval for peer in self._links)]
        if self._peers:
            contacts = sorted([p.voter_contact_at for p in self.progress.values()], reverse=True)
            due.append(contacts[self._majority - 2] + self._config.timing.check_quorum_timeout)
        return min(due)

    def _send_to(
        self, peer: int, progress: Progress, is_due: bool, now: float, commit_end: int, *, may_hold: bool
    ) -> bool:
        if progress.is_behind(self._journal.first_index):
            return self._turn_to_checkpoint(peer, progress, is_due, now, commit_end)
        if progress.state is FollowerState.PROBE:
            if progress.is_probe_out and not is_due:
                return False
            is_repeated = progress.probe_sent()
            # A peer that does not answer may not read either: entries go once, what is asked again goes without.
            if not is_repeated and progress.next_index <= self._journal.last_index:
                self._send_entries(peer, progress, now, commit_end, is_probe=True)
            else:
                self._send_append(peer, progress, progress.next_index - 1, b"", now, commit_end)
            return True
        if may_hold:
            is_all_committed = commit_end == self._journal.end_of(self._journal.last_index)
            may_hold = not (is_all_committed and self._notice.is_due)
            if may_hold and self._held.holds(self._journal.last_index - progress.next_index + 1, now):
                # Once nothing waits to be committed, entries go as soon as it is seen that no others follow.
                self._is_untold |= is_all_committed
                return False
        limits, has_sent = self._config.limits, False
        room = min(limits.inflight_bytes - progress.inflight_bytes, limits.pass_bytes)
        while progress.next_index <= self._journal.last_index and room > 0:
            room -= self._send_entries(peer, progress, now, commit_end, is_probe=False)
            has_sent = True
        if not has_sent and is_due:
            self._send_append(peer, progress, progress.next_index - 1, b"", now, commit_end)
            has_sent = True
        if not has_sent and commit_end > progress.sent_commit_end:
            if self._notice.is_due:
                progress.sent_commit_end = commit_end
                self._outbox.put(peer, Commit(self._core.epoch, commit_end))
            else:
                self._is_untold = True
        return has_sent

    def _send_entries(self, peer: int, progress: Progress, now: float, commit_end: int, *, is_probe: bool) -> int:
        """One message with as many entries as fit; returns their bytes. A probe does not move ``next_index``."""
        first = progress.next_index
        data, last = self._journal.gather(first, self._config.limits.append_bytes)
        self._send_append(peer, progress, first - 1, data, now, commit_end)
        if not is_probe:
            progress.sent(last, len(data))
        return len(data)

    def _send_append(
        self, peer: int, progress: Progress, prev_index: int, batches: bytes, now: float, commit_end: int
    ) -> None:
        progress.sent_at = now
        progress.sent_commit_end = commit_end
        is_vouched = not progress.is_voter and self._vouching.holds(peer, self.progress, self.majority_echoed())
        message = self._messages.after(prev_index, batches, self.round, commit_end, is_vouched=is_vouched)
        self._outbox.put(peer, message)

    def _turn_to_checkpoint(self, peer: int, progress: Progress, is_due: bool, now: float, commit_end: int) -> bool:
        """Offer it, at once if it is new, else in place of a heartbeat; without any the follower stays as it is."""
        offer = self._offers.offer(peer, now)
        if offer is None and is_due:
            self._send_append(peer, progress, self._journal.first_index, b"", now, commit_end)
            return True
        if offer is None or not (is_due or progress.offered_end != offer.id.end_offset):
            return False
        progress.become_checkpoint(offer.id.end_offset)
        progress.sent_at = now
        message = CheckpointOffer(self._core.epoch, self.round, *offer.id, offer.size, offer.crc, offer.manifest or b"")
        self._outbox.put(peer, message)
        return True

    def _refresh_acknowledged(self) -> None:
        self._messages.set_acknowledged((peer, self.progress[peer].acked_end) for peer in self._peers)
