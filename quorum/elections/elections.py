"""Decides when to ask for an election and when to agree to one. A pure state machine: time and randomness come in.

Rules of the file:

- Nothing here is needed for safety. Votes, epochs and the log rule are the library's; this decides *when* it may stand
  for election (Pre-Vote, section 9.6 of the Raft dissertation) and whom this node would vote for.
- Two drives lead to a Pre-Vote round. The *timeout* drive: no leader heard for a random time. The *fast* drive: the
  connection to the leader broke, the leader said that it stopped, or (cold boot) a majority is connected and nobody
  knows a leader. The fast drive staggers by rank, holds back after granting, and gives up after a few rounds.
- A round that is won gives one permission to stand, which the library's election condition takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from quorate.metadata_log.transitions import next_state
from quorate.quorum.config import QuorumTiming
from quorate.quorum.elections.candidacy import STEPS, Candidacy, CandidacyEvent

#: Fast rounds before the election timeout takes over: 8 x ~35 ms is still well under it.
FAST_ROUNDS_MAX: Final = 8


class LogPosition(NamedTuple):
    """End of a log as Raft compares it: epoch first."""

    last_epoch: int
    log_end: int


@dataclass(frozen=True, slots=True)
class PreVoteRound:
    """Ask every other voter whether it would vote for this node."""

    round: int


@dataclass(frozen=True, slots=True)
class PreVoteAnswer:
    """The answer to a Pre-Vote."""

    is_granted: bool
    has_leader: bool


class Elections:
    """The timers and rounds of one voter."""

    def __init__(self, node_id: int, peers: tuple[int, ...], timing: QuorumTiming, rng: Random, now: float) -> None:
        self._node_id = node_id
        self._peers = peers
        self._majority = (len(peers) + 1) // 2 + 1
        self._timing = timing
        self._rng = rng
        self._connected: set[int] = set()
        self._leader: int | None = None
        self._leader_heard = -math.inf
        self._deadline = now + self._random_timeout()
        #: Log ends of the other voters as last heard of, for the rank.
        self._log_ends: dict[int, int] = {}
        self._fast_at: float | None = None
        self._fast_rounds_left = 0
        self._hold_until = -math.inf
        self._quiet_until = -math.inf
        self._round = 0
        #: See ``candidacy``.
        self._candidacy = Candidacy.WAITING
        #: Voters who granted the round opened last, this node included.
        self._granted: set[int] = set()
        self._refused: set[int] = set()
        self._is_round_fast = False
        self._round_deadline = math.inf
        self._votes_refused: set[int] = set()
        self._is_campaign_fast = False
        if not peers:
            self._deadline = now

    # --- what happens outside ------------------------------------------------------------------------

    def connected(self, peer: int, now: float) -> None:
        """The connection to a voter stands. Enough of them and no leader known: a cold boot."""
        self._connected.add(peer)
        if self._leader is None and self._has_majority_connected() and self._fast_at is None:
            self._arm_fast(now)

    def disconnected(self, peer: int, now: float) -> None:
        """The connection to a voter broke. A killed leader shows itself like this within a millisecond."""
        self._connected.discard(peer)
        if peer == self._leader:
            self._arm_fast(now)

    def heard_leader(self, leader: int, now: float) -> None:
        """A message of the leader of the current epoch: everything that led towards an election is off."""
        self._leader = leader
        self._leader_heard = now
        self._deadline = now + self._random_timeout()
        self._fast_at = None
        self._take(CandidacyEvent.CALLED_OFF)
        self._is_campaign_fast = False

    def leader_stopped(self, now: float) -> None:
        """The leader said that it leads no more."""
        self._leader = None
        self._arm_fast(now)

    def epoch_changed(self) -> None:
        """A higher epoch was adopted without a leader: what was known of the old one is void."""
        self._leader = None
        self._take(CandidacyEvent.CALLED_OFF)

    def stepped_down(self, now: float) -> None:
        """This node stopped leading. It gives the others a full timeout."""
        self._leader = None
        self._fast_at = None
        self._deadline = now + self._random_timeout()

    def note_log_ends(self, ends: Iterable[tuple[int, int]]) -> None:
        """Note the ends of the other voters' logs, as far as anybody told."""
        for node_id, end in ends:
            if node_id == self._node_id or node_id in self._peers:
                self._log_ends[node_id] = end

    def woke(self, now: float) -> None:
        """The process was stopped for a while: no timer acts before the sockets have been read."""
        self._quiet_until = now + self._timing.wake_grace

    # --- asking --------------------------------------------------------------------------------------

    def tick(self, now: float) -> PreVoteRound | None:
        """Let time pass on a voter that does not lead. Returns the round to broadcast, if one begins."""
        if now < self._quiet_until or self._candidacy is Candidacy.ALLOWED:
            return None
        if self._candidacy is Candidacy.ASKING:
            if now < self._round_deadline:
                return None
            self._lose_round(now)
        if self._fast_at is not None and now >= max(self._fast_at, self._hold_until):
            self._fast_at = None
            if self._has_majority_connected():
                return self._open_round(now, is_fast=True)
        if now >= self._deadline:
            return self._open_round(now, is_fast=False)
        return None

    def on_pre_vote_reply(self, peer: int, round_: int, answer: PreVoteAnswer, now: float) -> None:
        """Count an answer to the open round; answers to other rounds say nothing."""
        if self._candidacy is not Candidacy.ASKING or round_ != self._round:
            return
        if answer.is_granted:
            self._granted.add(peer)
            if len(self._granted) >= self._majority:
                self._take(CandidacyEvent.WINS)
            return
        self._refused.add(peer)
        if not self._can_win_without(self._refused):
            self._lose_round(now)

    def take_permission(self) -> bool:
        """Whether the library may stand for election now. True once for each round won."""
        if self._candidacy is not Candidacy.ALLOWED:
            return False
        self._take(CandidacyEvent.STANDS)
        return True

    def campaign_started(self, now: float) -> None:
        """The library stands for election in a new epoch."""
        self._leader = None
        self._votes_refused = set()
        self._is_campaign_fast = self._is_round_fast
        self._deadline = now + self._random_timeout()
        if self._is_campaign_fast and self._fast_rounds_left > 0:
            # In case neither votes nor refusals arrive. Being elected or hearing a leader takes it back.
            self._fast_at = now + self._timing.fast_round_timeout + self._retry_delay()

    def vote_refused(self, peer: int, now: float) -> None:
        """A voter refused the vote. A fast campaign that cannot win any more is asked again soon."""
        self._votes_refused.add(peer)
        if self._is_campaign_fast and not self._can_win_without(self._votes_refused):
            self._is_campaign_fast = False
            self._retry_fast(now)

    def elected(self) -> None:
        """This node leads: nothing to ask for."""
        self._leader = self._node_id
        self._fast_at = None
        self._take(CandidacyEvent.CALLED_OFF)

    # --- answering -----------------------------------------------------------------------------------

    def on_pre_vote(self, candidate: LogPosition, own: LogPosition, now: float) -> PreVoteAnswer:
        """Whether this voter, not leading itself, would vote for a candidate whose epoch is above its own.

        Refused while the leader is alive for this voter: heard of within the shortest election timeout, over a
        connection that stands. So a leader that a majority still hears cannot be disturbed.
        """
        has_leader = self.has_living_leader(now)
        if has_leader:
            return PreVoteAnswer(is_granted=False, has_leader=True)
        if candidate < own:
            if self._fast_at is None and self._candidacy is not Candidacy.ASKING and self._has_majority_connected():
                # The candidate cannot win without us, and we would win against it.
                self._arm_fast(now)
            return PreVoteAnswer(is_granted=False, has_leader=False)
        self._hold(now)
        return PreVoteAnswer(is_granted=True, has_leader=False)

    def vote_granted(self, now: float) -> None:
        """This node gave its vote away: it leaves the candidate time to win."""
        self._deadline = now + self._random_timeout()
        self._take(CandidacyEvent.CALLED_OFF)
        self._hold(now)

    # --- looking -------------------------------------------------------------------------------------

    def has_living_leader(self, now: float) -> bool:
        """Whether this voter hears a leader: see ``on_pre_vote``."""
        return (
            self._leader is not None
            and self._leader in self._connected
            and now - self._leader_heard < self._timing.election_timeout_min
        )

    @property
    def round(self) -> int:
        """Number of the last round opened."""
        return self._round

    def next_deadline(self) -> float:
        """The time at which ``tick`` has something to do, if nothing happens before."""
        if self._candidacy is Candidacy.ASKING:
            at = self._round_deadline
        elif self._fast_at is not None:
            at = min(max(self._fast_at, self._hold_until), self._deadline)
        else:
            at = self._deadline
        return max(at, self._quiet_until)

    # --- inside --------------------------------------------------------------------------------------

    def _take(self, event: CandidacyEvent) -> None:
        """The one place where the state changes."""
        self._candidacy = next_state(STEPS, self._candidacy, event)

    def _random_timeout(self) -> float:
        return self._rng.uniform(self._timing.election_timeout_min, self._timing.election_timeout_max)

    def _retry_delay(self) -> float:
        return self._rng.uniform(self._timing.retry_min, self._timing.retry_max)

    def _has_majority_connected(self) -> bool:
        return len(self._connected) + 1 >= self._majority

    def _can_win_without(self, refused: set[int]) -> bool:
        """Whether this voter and those that may still answer it are a majority. The dead leader of three is neither."""
        return len(self._connected - refused) + 1 >= self._majority

    def _arm_fast(self, now: float) -> None:
        if not self._is_round_fast and self._candidacy is Candidacy.ASKING:
            # A round of the timeout drive may have been asked of nobody, and would be waited for long.
            self._take(CandidacyEvent.CALLED_OFF)
        self._fast_rounds_left = FAST_ROUNDS_MAX
        self._fast_at = now + self._rank() * self._timing.stagger

    def _rank(self) -> int:
        """The number of voters beside the lost leader that would make the better candidate: longer log, then lower
        id.
        """
        own_end = self._log_ends.get(self._node_id, 0)
        better = 0
        for peer in self._peers:
            if peer != self._leader and peer in self._connected:
                end = self._log_ends.get(peer, 0)
                better += end > own_end or (end == own_end and peer < self._node_id)
        return better

    def _hold(self, now: float) -> None:
        self._hold_until = max(self._hold_until, now + self._timing.grant_hold)

    def _open_round(self, now: float, *, is_fast: bool) -> PreVoteRound | None:
        self._take(CandidacyEvent.ASKS)
        self._round += 1
        self._is_round_fast = is_fast
        self._granted = {self._node_id}
        self._refused = set()
        self._deadline = now + self._random_timeout()
        timing = self._timing
        self._round_deadline = now + (timing.fast_round_timeout if is_fast else timing.election_timeout_min)
        if is_fast:
            self._fast_rounds_left -= 1
        if len(self._granted) >= self._majority:
            self._take(CandidacyEvent.WINS)
            return None
        return PreVoteRound(self._round)

    def _lose_round(self, now: float) -> None:
        self._take(CandidacyEvent.LOSES)
        if self._is_round_fast:
            self._retry_fast(now)

    def _retry_fast(self, now: float) -> None:
        if self._fast_rounds_left > 0:
            self._fast_at = now + self._retry_delay()
