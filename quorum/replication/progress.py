"""The leader's knowledge of one follower. Indexes are the leader's own, process-local ones."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """One follower's replication state in the leader's epoch."""

    #: The next entry to send. Invariant: matched_index < next_index.
    next_index: int
    #: The follower's log is the same up to here, durable or not.
    matched_index: int = 0
    #: Durable there up to here. Invariant: acked_index <= matched_index.
    acked_index: int = 0
    #: The same as an offset, for rank and status.
    acked_end: int = 0
    #: What the library was told of ``acked_index``.
    fed_index: int = 0
    #: Whether its acknowledgements count.
    is_voter: bool = False
    #: True until a match is known: one message at a time.
    is_probing: bool = True
    #: Whether the probe of ``probe_round`` is still unanswered.
    is_probe_out: bool = False
    #: Conflicts of earlier rounds are stale.
    probe_round: int = 0
    #: Highest round it has answered in this epoch, with a vote or without.
    answered_round: int = 0
    #: The same of answers that it gave as a voter.
    echoed_round: int = 0
    #: When it last answered in this epoch; at first, when the epoch began.
    contact_at: float = -math.inf
    #: The same of answers that it gave as a voter.
    voter_contact_at: float = -math.inf
    #: When it last had everything that the leader had; -inf = never in this epoch.
    caught_up_at: float = -math.inf
    #: End of the leader's log when it last acknowledged something, and when that was.
    log_end_then: float = math.inf
    acknowledged_at: float = -math.inf
    #: When it was last sent an Append or an offer.
    sent_at: float = -math.inf
    #: Highest commit point it was told.
    sent_commit_end: int = 0
    #: (last index, bytes) of messages sent and not yet matched.
    inflight: deque[tuple[int, int]] = field(default_factory=deque)
    inflight_bytes: int = 0
    #: End offset of the checkpoint that it is being offered, None when it follows the log.
    offered_end: int | None = None
    #: Bytes of that checkpoint which it has.
    checkpoint_position: int = 0

    def sent(self, last_index: int, size: int) -> None:
        """Entries up to ``last_index`` are on their way."""
        self.next_index = last_index + 1
        self.inflight.append((last_index, size))
        self.inflight_bytes += size

    def matched(self, index: int) -> None:
        """The follower's log is equal up to ``index``."""
        self.matched_index = max(self.matched_index, index)
        # The library repairs its next index only when the match advances; a stale reset would stay for ever.
        self.next_index = max(self.next_index, self.matched_index + 1)
        while self.inflight and self.inflight[0][0] <= self.matched_index:
            self.inflight_bytes -= self.inflight.popleft()[1]
        self.is_probing = False
        self.is_probe_out = False
        self.offered_end = None

    def acknowledged(self, end: int, log_end: int, now: float) -> None:
        """The follower has everything up to ``end``, of a log that ends at ``log_end``.

        If that is all there was when it spoke last, it had caught up then (Kafka's ``LeaderState``): a log that goes on
        growing does not make a follower late that keeps pace with it.
        """
        if end >= log_end:
            self.caught_up_at = now
        elif end >= self.log_end_then:
            self.caught_up_at = self.acknowledged_at
        self.log_end_then, self.acknowledged_at = log_end, now

    def restart(self, next_index: int, current_round: int) -> None:
        """Nothing is known to be on its way any more: probe at ``next_index``, ignoring conflicts up to now."""
        self.next_index = max(next_index, self.matched_index + 1)
        self.is_probing = True
        self.is_probe_out = False
        self.probe_round = current_round + 1
        self.inflight.clear()
        self.inflight_bytes = 0

    def forget_undurable(self) -> None:
        """The follower may have been started again: only what was durable there is there."""
        self.matched_index = self.acked_index

    def forget_match(self) -> None:
        """The follower lost its memory: nothing it said before holds."""
        self.matched_index = self.acked_index = self.fed_index = 0
        self.acked_end = 0
        self.caught_up_at = self.acknowledged_at = -math.inf
        self.log_end_then = math.inf
        self.is_voter = False
