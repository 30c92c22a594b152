"""The leader's side: passes over the followers, acknowledgements, the majority's durable end, contact.

The library keeps its own next and match indexes; it is fed matches only, and only what may be committed is visible
to its commit loop. What goes to whom and when is decided here, on events: new entries, replies, a moved commit
point, a due heartbeat, a read that needs a round.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

from metadata_log.checkpoint_transfer import CheckpointOffer as StoredOffer
from metadata_log.errors import InvariantViolation
from quorum.config import QuorumConfig
from quorum.core import RaftCore
from quorum.host import PeerStatus
from quorum.journal import LogJournal
from quorum.messages import Append, AppendConflict, AppendReply, CheckpointOffer, CheckpointProgress, Commit
from quorum.outbox import Outbox
from quorum.progress import Progress

#: Passes that a moved commit point waits for entries to go with. Whoever wrote what was committed writes again, if at
#: all, within the next turns of the loop; followers are spared a message for every one of a stream of writes.
_COMMIT_PATIENCE: Final = 2


class OfferSource(Protocol):
    """Where the checkpoint comes from that is offered to a follower behind the log's start."""

    def offer(self) -> StoredOffer | None:
        """The newest checkpoint that can be served, None while there is none."""


class Replication:
    """State of the leader towards its followers. Reset at every election won."""

    def __init__(
        self, config: QuorumConfig, core: RaftCore, journal: LogJournal, outbox: Outbox, offers: OfferSource
    ) -> None:
        self._config = config
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
        #: Passes in a row that left a follower untold of the commit point.
        self._untold_passes = 0
        self._is_untold = False
        #: The message made last in this pass, and the previous index and vouching it was made for: followers that are
        #: level are sent the same one.
        self._made: Append | None = None
        self._made_for = (0, False)
        self._acknowledged: tuple[tuple[int, int], ...] = ()

    # --- life of an epoch ----------------------------------------------------------------------------

    def begin_epoch(self, now: float) -> None:
        """This node was elected: probe everybody with the epoch's first entry."""
        next_index = self._core.first_own_index
        self.round = 0
        self._is_round_wanted = False
        self.progress = {peer: Progress(next_index=next_index, contact_at=now) for peer in self._peers}
        for peer, is_voter in self._links.items():
            self.progress[peer].is_voter = is_voter
        self._journal.visible_index = 0
        self._refresh_acknowledged()

    def end_epoch(self) -> None:
        """This node leads no more."""
        self.progress = {}
        self._journal.visible_index = None

    def connected(self, peer: int, *, is_voter: bool, has_new_memory: bool) -> None:
        """A connection stands. A peer with another directory than before acknowledged nothing yet."""
        self._links[peer] = is_voter
        progress = self.progress.get(peer)
        if progress is None:
            return
        progress.forget_undurable()
        if has_new_memory or not is_voter:
            progress.forget_match()
        progress.is_voter = is_voter
        progress.joined_round = self.round + 1
        progress.restart(max(progress.matched_index + 1, self._core.first_own_index), self.round)

    def disconnected(self, peer: int) -> None:
        """A connection broke; whatever was on it is lost."""
        self._links.pop(peer, None)
        progress = self.progress.get(peer)
        if progress is not None:
            progress.restart(progress.matched_index + 1, self.round)

    def peer_status(self, peer: int, now: float) -> PeerStatus:
        """A voter, for status screens."""
        is_connected, is_voter = peer in self._links, self._links.get(peer, False)
        progress = self.progress.get(peer)
        if progress is None:
            return PeerStatus(peer, is_connected, is_voter, None, None, None, None)
        return PeerStatus(
            node_id=peer,
            is_connected=is_connected,
            is_voter=progress.is_voter,
            acknowledged_end=progress.acked_end,
            last_contact_age=now - progress.contact_at,
            caught_up_age=now - progress.caught_up_at if math.isfinite(progress.caught_up_at) else None,
            checkpoint=None if progress.offered_end is None else (progress.offered_end, progress.checkpoint_position),
        )

    # --- replies -------------------------------------------------------------------------------------

    def on_reply(self, peer: int, reply: AppendReply, now: float) -> None:
        """A match, and how much of it is durable there."""
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        if progress is None:
            return
        if reply.matched_end < self._journal.end_of(self._journal.first_index):
            return  # Older than anything this log still holds: it says nothing new.
        matched = self._journal.index_of_end(reply.matched_end)
        if matched is None or reply.acked_end > reply.matched_end:
            raise InvariantViolation(
                f"node {peer} matches {reply.matched_end} and acknowledges {reply.acked_end} in epoch {reply.epoch}: "
                "no boundary of the leader's log"
            )
        progress.matched(matched)
        progress.acknowledged(reply.acked_end, self._journal.end_of(self._journal.last_index), now)
        acked = self._journal.index_of_end(reply.acked_end)
        if acked is not None and acked > progress.acked_index:
            progress.acked_index = acked
            progress.acked_end = reply.acked_end

    def on_conflict(self, peer: int, reply: AppendConflict, now: float) -> None:
        """No match where the last message began: step back to where the follower points."""
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        if progress is None or reply.round < progress.probe_round:
            return
        journal = self._journal
        if reply.hint_end < journal.end_of(journal.first_index):
            next_index = journal.first_index
        else:
            next_index = journal.index_at_or_below(reply.hint_end) + 1
        progress.offered_end = None
        progress.restart(next_index, self.round)

    def on_checkpoint_progress(self, peer: int, reply: CheckpointProgress, now: float) -> None:
        """The follower is taking the checkpoint: that counts as contact, and as nothing else."""
        progress = self._heard(peer, reply.epoch, reply.round, reply.is_voter, now)
        if progress is not None:
            progress.checkpoint_position = reply.position

    def _heard(self, peer: int, epoch: int, round_: int, is_voter: bool, now: float) -> Progress | None:
        """The follower's progress if the reply belongs to this epoch and to a round of it."""
        progress = self.progress.get(peer)
        if progress is None or epoch != self._core.epoch or not 0 < round_ <= self.round:
            return None
        progress.contact_at = now
        progress.is_voter = is_voter
        if is_voter:
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
        visible = self._journal.visible_index = acked[self._config.majority - 1]
        if visible < self._core.first_own_index:
            return False  # Nothing of this epoch can be committed yet: spare the library a walk over older entries.
        for peer, progress in self.progress.items():
            # Not beyond what may be committed: the library would walk there in vain, again and again.
            index = min(progress.acked_index, visible)
            if progress.is_voter and index > progress.fed_index:
                progress.fed_index = index
                self._core.feed_match(peer, index)
        return visible > self._core.commit_index

    def has_quorum(self, now: float) -> bool:
        """Whether a majority, this node included, answered recently enough to go on leading."""
        oldest = now - self._config.timing.check_quorum_timeout
        return 1 + sum(p.contact_at > oldest for p in self.progress.values()) >= self._config.majority

    def majority_echoed(self) -> int:
        """The highest round that a majority of voters, this node included, has answered."""
        echoed = sorted((p.echoed_round for p in self.progress.values()), reverse=True)
        needed = self._config.majority - 1
        return self.round if needed == 0 else echoed[needed - 1]

    def want_round(self) -> int:
        """Ask for a pass that reaches every follower; returns the number it will have."""
        if not self._peers:
            return self.round
        self._is_round_wanted = True
        return self.round + 1

    # --- passes --------------------------------------------------------------------------------------

    def send_pass(self, now: float, commit_end: int) -> bool:
        """Send to every connected follower what is new for it. Returns whether the next turn has to do it again."""
        heartbeat_due = now - self._config.timing.heartbeat_interval
        if any(self._is_due(peer, heartbeat_due) for peer in self._links):
            self._refresh_acknowledged()
        self.round += 1
        has_sent = self._is_untold = False
        for peer in self._peers:
            if peer in self._links:
                is_due = self._is_round_wanted or self._is_due(peer, heartbeat_due)
                has_sent |= self._send_to(peer, self.progress[peer], is_due, now, commit_end)
        self._is_round_wanted = self._is_round_wanted and bool(self._peers) and not has_sent
        if not has_sent and self._peers:
            self.round -= 1
        self._made = None
        self._untold_passes = self._untold_passes + 1 if self._is_untold else 0
        return self._is_untold

    def next_deadline(self) -> float:
        """When the next heartbeat, or the next look at the quorum, is due."""
        interval = self._config.timing.heartbeat_interval
        due = [self.progress[peer].sent_at + interval for peer in self._links]
        if self._peers:
            contacts = sorted((p.contact_at for p in self.progress.values()), reverse=True)
            due.append(contacts[self._config.majority - 2] + self._config.timing.check_quorum_timeout)
        return min(due, default=float("inf"))

    def _is_due(self, peer: int, heartbeat_due: float) -> bool:
        return self.progress[peer].sent_at <= heartbeat_due

    def _send_to(self, peer: int, progress: Progress, is_due: bool, now: float, commit_end: int) -> bool:
        if progress.next_index <= self._journal.first_index:
            return self._send_offer(peer, progress, is_due, now)
        if progress.is_probing:
            if progress.is_probe_out and not is_due:
                return False
            progress.is_probe_out = True
            if progress.next_index <= self._journal.last_index:
                self._send_entries(peer, progress, now, commit_end, is_probe=True)
            else:
                self._send_append(peer, progress, progress.next_index - 1, b"", now, commit_end)
            return True
        has_sent = False
        while (
            progress.next_index <= self._journal.last_index
            and progress.inflight_bytes < self._config.limits.inflight_bytes
        ):
            self._send_entries(peer, progress, now, commit_end, is_probe=False)
            has_sent = True
        if not has_sent and is_due:
            self._send_append(peer, progress, progress.next_index - 1, b"", now, commit_end)
            has_sent = True
        if not has_sent and commit_end > progress.sent_commit_end:
            if self._untold_passes < _COMMIT_PATIENCE:
                self._is_untold = True
            else:
                progress.sent_commit_end = commit_end
                self._outbox.put(peer, Commit(self._core.epoch, commit_end))
        return has_sent

    def _send_entries(self, peer: int, progress: Progress, now: float, commit_end: int, *, is_probe: bool) -> None:
        """One message with as many entries as fit. A probe does not move ``next_index``."""
        first = progress.next_index
        data, last = self._journal.gather(first, self._config.limits.append_bytes)
        self._send_append(peer, progress, first - 1, data, now, commit_end)
        if not is_probe:
            progress.sent(last, len(data))

    def _send_append(
        self, peer: int, progress: Progress, prev_index: int, batches: bytes, now: float, commit_end: int
    ) -> None:
        progress.sent_at = now
        progress.sent_commit_end = commit_end
        is_vouched = not progress.is_voter and self.majority_echoed() >= progress.joined_round
        message = self._made
        if message is None or message.batches is not batches or self._made_for != (prev_index, is_vouched):
            journal = self._journal
            message = self._made = Append(
                self._core.epoch,
                self.round,
                journal.end_of(prev_index),
                journal.epoch_of(prev_index),
                commit_end,
                batches,
                self._acknowledged,
                is_vouched,
            )
            self._made_for = (prev_index, is_vouched)
        self._outbox.put(peer, message)

    def _send_offer(self, peer: int, progress: Progress, is_due: bool, now: float) -> bool:
        offer = self._offers.offer()
        if offer is None or not (is_due or progress.offered_end != offer.id.end_offset):
            return False
        progress.offered_end = offer.id.end_offset
        progress.sent_at = now
        message = CheckpointOffer(self._core.epoch, self.round, *offer.id, offer.size, offer.crc, offer.manifest or b"")
        self._outbox.put(peer, message)
        return True

    def _refresh_acknowledged(self) -> None:
        self._acknowledged = tuple((peer, self.progress[peer].acked_end) for peer in self._peers)
