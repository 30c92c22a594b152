"""The three states of a follower: each edge between them, what it leaves behind, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import pytest

from quorate.quorum.replication.progress import FollowerState, Progress

PROBE, REPLICATE, CHECKPOINT = FollowerState
#: What belongs to one state each: whether a probe is out, what is on its way, the checkpoint that is offered.
Own = tuple[bool, list[tuple[int, int]], tuple[int, int] | None]
PROBE_OUT: Final[Own] = (True, [], None)
INFLIGHT: Final[Own] = (False, [(12, 500), (15, 300)], None)
OFFERED: Final[Own] = (False, [], (90, 4_096))
NOTHING: Final[Own] = (False, [], None)


def follower(state: FollowerState) -> Progress:
    """One in that state, with all that belongs to it; what comes next to it is entry 10."""
    progress = Progress(next_index=10, matched_index=9, acked_index=8)
    if state is PROBE:
        progress.probe_sent()
    elif state is REPLICATE:
        progress.become_replicate()
        progress.sent(12, 500)
        progress.sent(15, 300)
    else:
        progress.become_checkpoint(90)
        progress.checkpoint_taken(4_096)
    return progress


def own(progress: Progress) -> Own:
    """What it has of each state; the bytes on their way are those of the messages."""
    assert progress.inflight_bytes == sum(size for _, size in progress.inflight)
    return progress.is_probe_out, list(progress.inflight), progress.checkpoint


def probed(progress: Progress) -> None:
    progress.become_probe(10, current_round=3)


def matched(progress: Progress) -> None:
    progress.matched(9)


def offered_same(progress: Progress) -> None:
    progress.become_checkpoint(90)


def offered_other(progress: Progress) -> None:
    progress.become_checkpoint(95)


@pytest.mark.parametrize(("state", "expected"), [(PROBE, PROBE_OUT), (REPLICATE, INFLIGHT), (CHECKPOINT, OFFERED)])
def test_state_has_what_belongs_to_it_and_nothing_else(state: FollowerState, expected: Own) -> None:
    progress = follower(state)

    assert progress.state is state
    assert own(progress) == expected


@pytest.mark.parametrize(
    ("start", "event", "end", "left"),
    [
        (PROBE, probed, PROBE, NOTHING),
        (PROBE, matched, REPLICATE, NOTHING),
        (PROBE, offered_same, CHECKPOINT, (False, [], (90, 0))),
        (REPLICATE, probed, PROBE, NOTHING),
        (REPLICATE, matched, REPLICATE, INFLIGHT),
        (REPLICATE, offered_same, CHECKPOINT, (False, [], (90, 0))),
        (CHECKPOINT, probed, PROBE, NOTHING),
        (CHECKPOINT, matched, REPLICATE, NOTHING),
        (CHECKPOINT, offered_same, CHECKPOINT, OFFERED),
        (CHECKPOINT, offered_other, CHECKPOINT, (False, [], (95, 0))),
    ],
)
def test_edge_leads_to_its_state_and_leaves_what_belonged_to_the_last(
    start: FollowerState, event: Callable[[Progress], None], end: FollowerState, left: Own
) -> None:
    progress = follower(start)

    event(progress)

    assert progress.state is end
    assert own(progress) == left


def test_probe_says_whether_it_repeats_an_unanswered_one() -> None:
    progress = Progress(next_index=10)

    assert [progress.probe_sent(), progress.probe_sent()] == [False, True]
    progress.become_probe(10, current_round=3)
    assert not progress.probe_sent()


@pytest.mark.parametrize("state", [REPLICATE, CHECKPOINT])
def test_probe_of_one_that_is_not_probed_is_refused(state: FollowerState) -> None:
    progress = follower(state)
    before = own(progress)

    with pytest.raises(AssertionError, match=state.name):
        progress.probe_sent()
    assert own(progress) == before


@pytest.mark.parametrize("state", [PROBE, CHECKPOINT])
def test_entries_on_their_way_to_one_without_a_match_are_refused(state: FollowerState) -> None:
    progress = follower(state)
    before = own(progress)

    with pytest.raises(AssertionError, match=state.name):
        progress.sent(20, 100)
    assert (progress.next_index, own(progress)) == (10, before)


@pytest.mark.parametrize("state", [PROBE, REPLICATE])
def test_late_word_of_a_checkpoint_is_nothing_to_one_that_is_offered_none(state: FollowerState) -> None:
    progress = follower(state)
    before = own(progress)

    progress.checkpoint_taken(8_192)

    assert (progress.state, own(progress)) == (state, before)


@pytest.mark.parametrize("name", ["state", "is_probe_out", "inflight", "inflight_bytes", "checkpoint", "offered_end"])
def test_state_and_what_belongs_to_it_can_be_set_from_nowhere_else(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(follower(PROBE), name, None)


@pytest.mark.parametrize(
    ("asked", "next_index"), [(5, 10), (9, 10), (10, 10), (14, 14)], ids=["below", "at the match", "next", "beyond"]
)
def test_probe_begins_above_the_match_and_makes_earlier_conflicts_stale(asked: int, next_index: int) -> None:
    progress = follower(REPLICATE)

    progress.become_probe(asked, current_round=3)

    assert (progress.next_index, progress.probe_round) == (next_index, 4)


@pytest.mark.parametrize(
    ("index", "matched_index", "inflight"),
    [
        (7, 9, [(12, 500), (15, 300)]),
        (11, 11, [(12, 500), (15, 300)]),
        (12, 12, [(15, 300)]),
        (15, 15, []),
    ],
    ids=["older", "within a message", "one message", "all"],
)
def test_match_only_grows_and_frees_the_messages_it_covers(
    index: int, matched_index: int, inflight: list[tuple[int, int]]
) -> None:
    progress = follower(REPLICATE)

    progress.matched(index)

    assert (progress.matched_index, progress.next_index) == (matched_index, 16)
    assert own(progress) == (False, inflight, None)


def test_match_beyond_the_next_entry_moves_it() -> None:
    progress = follower(CHECKPOINT)

    progress.matched(40)

    assert (progress.state, progress.next_index) == (REPLICATE, 41)


@pytest.mark.parametrize(("first_index", "is_behind"), [(9, False), (10, True), (11, True)])
def test_follower_is_behind_when_the_entry_before_its_next_one_is_gone(first_index: int, is_behind: bool) -> None:
    assert follower(PROBE).is_behind(first_index) is is_behind


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (PROBE, "PROBE matched=9 acked=8 next=10 out=True"),
        (REPLICATE, "REPLICATE matched=9 acked=8 next=16 inflight=2 (800 bytes)"),
        (CHECKPOINT, "CHECKPOINT matched=9 acked=8 next=10 end=90 position=4096"),
    ],
)
def test_text_says_the_state_and_what_belongs_to_it(state: FollowerState, text: str) -> None:
    assert str(follower(state)) == text


def test_follower_that_was_started_again_has_what_was_durable() -> None:
    progress = follower(REPLICATE)

    progress.forget_undurable()

    assert (progress.matched_index, progress.acked_index) == (8, 8)


def test_follower_that_keeps_pace_with_a_growing_log_was_level_when_it_spoke_last() -> None:
    progress = Progress(next_index=10)
    progress.acknowledged(90, log_end=100, now=1.0)
    assert progress.caught_up_at == -math.inf

    progress.acknowledged(100, log_end=120, now=2.0)
    assert progress.caught_up_at == 1.0
    progress.acknowledged(120, log_end=140, now=3.0)
    assert progress.caught_up_at == 2.0
    progress.acknowledged(130, log_end=150, now=4.0)
    assert progress.caught_up_at == 2.0
    progress.acknowledged(150, log_end=150, now=5.0)
    assert progress.caught_up_at == 5.0

    progress.forget_match()
    assert progress.caught_up_at == -math.inf
