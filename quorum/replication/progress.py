"""The leader's knowledge of one follower. Indexes are the leader's own, process-local ones.

A follower is served in one of three states, as in etcd's raft (``tracker/progress.go``). ``become_...`` alone change
the state; each leaves behind what belongs to the one that it ends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum


class FollowerState(Enum):
    """A way in which a follower is served."""

    #: Where its log matches is not known: one message at a time.
    PROBE = "probe"
    #: A match is known: entries are sent on before the last ones are answered.
    REPLICATE = "replicate"
    #: What it lacks is gone from the log: it is offered a checkpoint, and no entries.
    CHECKPOINT = "checkpoint"


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
    _state: FollowerState = field(default=FollowerState.PROBE, init=False)
    #: PROBE only.
    _is_probe_out: bool = field(default=False, init=False)
    #: REPLICATE only.
    _inflight: deque[tuple[int, int]] = field(default_factory=deque, init=False)
    _inflight_bytes: int = field(default=0, init=False)
    #: CHECKPOINT only.
    _checkpoint: tuple[int, int] | None = field(default=None, init=False)

    def __str__(self) -> str:
        known = f"{self._state.name} matched={self.matched_index} acked={self.acked_index} next={self.next_index}"
        if self._state is FollowerState.PROBE:
            return f"{known} out={self._is_probe_out}"
        if self._checkpoint is not None:
            return f"{known} end={self._checkpoint[0]} position={self._checkpoint[1]}"
        return f"{known} inflight={len(self._inflight)} ({self._inflight_bytes} bytes)"

    # --- the state -----------------------------------------------------------------------------------

    @property
    def state(self) -> FollowerState:
        """The way in which it is served now."""
        return self._state

    @property
    def is_probe_out(self) -> bool:
        """Whether a probe is unanswered; never but in PROBE."""
        return self._is_probe_out

    @property
    def inflight(self) -> Sequence[tuple[int, int]]:
        """(last index, bytes) of messages with entries sent and not yet matched; none but in REPLICATE."""
        return self._inflight

    @property
    def inflight_bytes(self) -> int:
        """The bytes of all of them."""
        return self._inflight_bytes

    @property
    def checkpoint(self) -> tuple[int, int] | None:
        """End offset of the checkpoint that it is offered, and how many of its bytes it has; None but in CHECKPOINT."""
        return self._checkpoint

    @property
    def offered_end(self) -> int | None:
        """End offset of the checkpoint that it is offered; None but in CHECKPOINT."""
        return None if self._checkpoint is None else self._checkpoint[0]

    def become_probe(self, next_index: int, current_round: int) -> None:
        """Nothing is known to be on its way any more: probe at ``next_index``, ignoring conflicts up to now."""
        self._enter(FollowerState.PROBE)
        self.next_index = max(next_index, self.matched_index + 1)
        self.probe_round = current_round + 1

    def become_replicate(self) -> None:
        """A match is known. Nothing in REPLICATE: what is on its way stays so."""
        if self._state is not FollowerState.REPLICATE:
            self._enter(FollowerState.REPLICATE)

    def become_checkpoint(self, end_offset: int) -> None:
        """It is offered the checkpoint that ends there. Nothing if it is already: it has of it what it has."""
        if self.offered_end != end_offset:
            self._enter(FollowerState.CHECKPOINT)
            self._checkpoint = (end_offset, 0)

    def _enter(self, state: FollowerState) -> None:
        self._state = state
        self._is_probe_out = False
        self._inflight.clear()
        self._inflight_bytes = 0
        self._checkpoint = None

    # --- what was sent, what came back ---------------------------------------------------------------

    def is_behind(self, first_index: int) -> bool:
        """Whether what it lacks is gone from a log that begins at ``first_index``: the turn to a checkpoint.

        A message names the end and the epoch of the entry before its first one; none is kept below ``first_index``.
        """
        return self.next_index <= first_index

    def probe_sent(self) -> bool:
        """A probe is on its way; ``next_index`` stays. Returns whether it repeats one that is unanswered."""
        assert self._state is FollowerState.PROBE, f"a probe where a match is known: {self}"
        is_repeated, self._is_probe_out = self._is_probe_out, True
        return is_repeated

    def sent(self, last_index: int, size: int) -> None:
        """Entries up to ``last_index`` are on their way."""
        assert self._state is FollowerState.REPLICATE, f"entries where no match is known: {self}"
        self.next_index = last_index + 1
        self._inflight.append((last_index, size))
        self._inflight_bytes += size

    def matched(self, index: int) -> None:
        """The follower's log is equal up to ``index``."""
        self.matched_index = max(self.matched_index, index)
        # The library repairs its next index only when the match advances; a stale reset would stay for ever.
        self.next_index = max(self.next_index, self.matched_index + 1)
        while self._inflight and self._inflight[0][0] <= self.matched_index:
            self._inflight_bytes -= self._inflight.popleft()[1]
        self.become_replicate()

    def checkpoint_taken(self, position: int) -> None:
        """It has so many bytes of the checkpoint that it is offered. In another state this is late, and nothing."""
        if self._checkpoint is not None:
            self._checkpoint = (self._checkpoint[0], position)

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
