"""When a voter asks for an election, and when it agrees to one."""

from __future__ import annotations

from random import Random

import pytest

from quorate.quorum.elections.elections import FAST_ROUNDS_MAX, Elections, LogPosition, PreVoteAnswer, PreVoteRound
from tests.default_parts import quorum_timing

TIMING = quorum_timing()
LEVEL = LogPosition(3, 40)
GRANTED = PreVoteAnswer(is_granted=True, has_leader=False)
REFUSED = PreVoteAnswer(is_granted=False, has_leader=False)


def voter(node_id: int = 1, peers: tuple[int, ...] = (0, 2)) -> Elections:
    """A voter at time 0 whose connections to all peers stand, and whose leader is its first peer."""
    elections = Elections(node_id, peers, TIMING, Random(1), 0.0)
    for peer in peers:
        elections.connected(peer, 0.0)
    if peers:
        elections.heard_leader(peers[0], 0.0)
    return elections


def test_elections_leader_heard_nothing_is_asked() -> None:
    elections = voter()

    assert elections.tick(TIMING.election_timeout_min - 0.01) is None
    assert not elections.take_permission()


def test_elections_silent_leader_asks_after_the_timeout() -> None:
    elections = voter()

    assert elections.tick(TIMING.election_timeout_max + 0.01) == PreVoteRound(1)


def test_elections_broken_connection_asks_at_once_by_rank() -> None:
    """Both followers see the leader's connection break: the lower id asks first, the other 30 ms later."""
    first, second = voter(1, (0, 2)), voter(2, (0, 1))
    for elections in (first, second):
        elections.disconnected(0, 0.1)

    assert first.tick(0.1) == PreVoteRound(1)
    assert second.tick(0.1) is None
    assert second.next_deadline() == pytest.approx(0.13)


def test_elections_longer_log_ranks_before_lower_id() -> None:
    elections = voter(2, (0, 1))
    elections.note_log_ends([(2, 50), (1, 40)])
    elections.disconnected(0, 0.1)

    assert elections.tick(0.1) == PreVoteRound(1)


def test_elections_majority_grants_gives_one_permission() -> None:
    elections = voter()
    elections.disconnected(0, 0.1)
    elections.tick(0.1)

    elections.on_pre_vote_reply(2, 1, GRANTED, 0.11)

    assert elections.take_permission()
    assert not elections.take_permission()


@pytest.mark.parametrize("round_", [0, 2])
def test_elections_answer_to_another_round_says_nothing(round_: int) -> None:
    elections = voter()
    elections.disconnected(0, 0.1)
    elections.tick(0.1)

    elections.on_pre_vote_reply(2, round_, GRANTED, 0.11)

    assert not elections.take_permission()


def test_elections_lost_fast_round_is_asked_again_soon_but_not_for_ever() -> None:
    elections = voter(1, (0, 2))
    elections.disconnected(0, 0.1)
    now, rounds = 0.1, 0
    while now < 0.45:
        asked = elections.tick(now)
        if asked is not None:
            rounds += 1
            elections.on_pre_vote_reply(2, asked.round, REFUSED, now)
            elections.on_pre_vote_reply(0, asked.round, REFUSED, now)
        now += 0.001

    assert 4 <= rounds <= FAST_ROUNDS_MAX


def test_elections_fast_round_refused_by_all_that_can_answer_is_lost_at_once() -> None:
    """Of three voters the leader is dead, and the other has not yet noticed: there is nobody else to wait for."""
    elections = voter(1, (0, 2))
    elections.disconnected(0, 0.1)
    assert elections.tick(0.1) == PreVoteRound(1)

    elections.on_pre_vote_reply(2, 1, PreVoteAnswer(is_granted=False, has_leader=True), 0.101)

    assert 0.101 + TIMING.retry_min <= elections.next_deadline() <= 0.101 + TIMING.retry_max
    assert elections.tick(elections.next_deadline()) == PreVoteRound(2)


def test_elections_hearing_the_leader_takes_everything_back() -> None:
    elections = voter()
    elections.disconnected(0, 0.1)
    elections.tick(0.1)
    elections.on_pre_vote_reply(2, 1, GRANTED, 0.11)

    elections.heard_leader(0, 0.12)

    assert not elections.take_permission()
    assert elections.tick(0.2) is None


def test_pre_vote_living_leader_is_refused() -> None:
    """One broken connection must not disturb a leader that the others still hear."""
    assert voter().on_pre_vote(LEVEL, LEVEL, 0.3) == PreVoteAnswer(is_granted=False, has_leader=True)


def test_pre_vote_own_connection_broken_too_is_granted_at_once() -> None:
    elections = voter()
    elections.disconnected(0, 0.1)

    assert elections.on_pre_vote(LEVEL, LEVEL, 0.1) == GRANTED


@pytest.mark.parametrize("candidate", [LogPosition(3, 39), LogPosition(2, 99)])
def test_pre_vote_candidate_with_less_log_is_refused(candidate: LogPosition) -> None:
    elections = voter()
    elections.disconnected(0, 0.1)

    assert elections.on_pre_vote(candidate, LEVEL, 0.1) == REFUSED


def test_pre_vote_granted_holds_the_own_candidacy_back() -> None:
    elections = voter(1, (0, 2))
    elections.disconnected(0, 0.1)
    elections.on_pre_vote(LEVEL, LEVEL, 0.1)

    assert elections.tick(0.1) is None
    assert elections.tick(0.1 + TIMING.grant_hold) == PreVoteRound(1)


def test_elections_woken_from_a_pause_no_timer_acts_before_the_sockets() -> None:
    elections = voter()
    elections.woke(9.0)

    assert elections.tick(9.0) is None
    assert elections.next_deadline() == pytest.approx(9.0 + TIMING.wake_grace)


def test_elections_cold_boot_majority_connected_asks_without_waiting() -> None:
    elections = Elections(0, (1, 2), TIMING, Random(1), 0.0)
    elections.connected(1, 0.001)

    assert elections.tick(0.001) == PreVoteRound(1)


def test_elections_cold_boot_round_asked_of_nobody_is_not_waited_for() -> None:
    """A node that loaded its state for longer than the election timeout asks at once, and nobody is connected yet."""
    elections = Elections(1, (0, 2), TIMING, Random(1), 0.0)
    late = TIMING.election_timeout_max + 0.01
    assert elections.tick(late) == PreVoteRound(1)

    elections.connected(0, late + 0.01)

    assert elections.tick(late + 0.01 + 2 * TIMING.stagger) == PreVoteRound(2)


def test_elections_single_voter_stands_at_once() -> None:
    elections = voter(0, ())

    assert elections.tick(0.0) is None
    assert elections.take_permission()
