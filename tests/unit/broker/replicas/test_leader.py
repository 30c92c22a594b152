"""Sessions on the leaders' side: whose word is taken, and what an echo proves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from quorate.broker.replicas.attended import AttendedClock
from quorate.broker.replicas.leader import LeaderCore
from quorate.broker.replicas.messages import EVERYTHING, UNSAID, FollowAnswer, FollowedRows, FollowMessage, no_rows
from quorate.broker.replicas.stand_in import StandInLog
from quorate.metadata_log.errors import ErrorCode
from tests.unit.broker.images import change, cluster_image, partition, registration, replayed, uuid

LAG_MAX_MS = 1_000.0


class Leader:
    """The process of broker 1, which leads one partition, and time."""

    def __init__(self, *, isr: list[int]) -> None:
        self.image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=isr)])
        self.core = LeaderCore(StandInLog(0, 0), LAG_MAX_MS)
        self.core.cluster_id = "cluster"
        self.core.update(self.image, {1}, 0.0)

    def says(self, message: FollowMessage, at: float) -> FollowAnswer:
        return self.core.answer(message, at, 0.0)

    def wanted(self, at: float) -> list[int]:
        """The ISR asked for; [] = none is."""
        self.core.book.expire(at)
        asked = [isr for one in self.core.book.due(at, (), 10) for isr in one.isr.tolist()]
        return [id_ for id_ in asked[0] if id_ >= 0] if asked else []


def row(follower: int, *, is_level: bool = True) -> FollowedRows:
    return FollowedRows(
        np.frombuffer(uuid(0), np.uint8).reshape(1, 16),
        np.array([0], np.int32),
        np.array([0], np.int32),
        np.array([follower], np.int32),
        np.array([EVERYTHING], np.int64),
        np.array([is_level]),
    )


def first(session: int, follower: int, epoch: int = 1) -> FollowMessage:
    return FollowMessage("cluster", "", session, 0, ((follower, epoch),), UNSAID, UNSAID, row(follower))


def next_one(message: FollowMessage, answer: FollowAnswer) -> FollowMessage:
    return replace(message, number=message.number + 1, replied_ms=answer.time_ms, position=0, rows=no_rows())


def test_answer_first_message_alone_proves_nothing() -> None:
    """It may have lain in a socket for hours: only an echo of an answer says when it was true."""
    leader = Leader(isr=[1, 3])
    message = first(7, 2)
    answer = leader.says(message, 10)
    assert answer.error is ErrorCode.NONE
    assert leader.wanted(11) == []

    leader.says(next_one(message, answer), 12)
    assert leader.wanted(12) == [1, 2, 3]


def test_answer_echo_of_long_ago_makes_nobody_level() -> None:
    """The follower was frozen with the message in its hands."""
    leader = Leader(isr=[1])
    message = first(7, 2)
    answer = leader.says(message, 10)
    late = next_one(message, answer)
    answer = leader.says(late, 10 + LAG_MAX_MS + 5)
    assert leader.wanted(10 + LAG_MAX_MS + 6) == []

    leader.says(next_one(late, answer), 10 + LAG_MAX_MS + 20)
    assert leader.wanted(10 + LAG_MAX_MS + 21) == [1, 2]


def test_answer_level_follower_that_fell_silent_until_it_left_enters_with_its_next_word() -> None:
    """It was level when it was heard last, and is: what is new is that it was heard in time."""
    leader = Leader(isr=[1, 2, 3])
    message = first(7, 2)
    message = next_one(message, leader.says(message, 0))
    message = next_one(message, leader.says(message, 10))
    answer = leader.says(message, 500)
    assert leader.wanted(LAG_MAX_MS + 11) == [1], "it had all at 10, and nobody knows yet that it does at 500"
    leader.core.update(replayed(leader.image, change(0, 0, isr=[1])), {1}, LAG_MAX_MS + 12)
    assert leader.wanted(LAG_MAX_MS + 13) == []

    leader.says(next_one(message, answer), LAG_MAX_MS + 200)
    assert leader.wanted(LAG_MAX_MS + 201) == [1, 2]


@pytest.mark.parametrize(
    ("change_of", "error"),
    [
        ({"number": 3}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"replied_ms": 1}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"session": 8}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"number": 0, "replied_ms": UNSAID}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"followers": ((2, 9),)}, ErrorCode.STALE_BROKER_EPOCH),
        ({"followers": ((9, 1),)}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_answer_message_that_does_not_continue_its_session_is_refused(
    change_of: dict[str, object], error: ErrorCode
) -> None:
    leader = Leader(isr=[1])
    message = first(7, 2)
    follows = next_one(message, leader.says(message, 10))

    assert leader.says(replace(follows, **change_of), 11).error is error  # type: ignore[arg-type]
    assert leader.wanted(12) == []


def test_answer_later_session_of_a_broker_takes_it_from_the_earlier_one() -> None:
    leader = Leader(isr=[1])
    old, new = first(7, 2), first(8, 2)
    of_old = leader.says(old, 10)
    leader.says(new, 11)

    assert leader.says(next_one(old, of_old), 12).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert leader.core.session_count == 1


def test_answer_row_of_a_broker_that_is_not_of_the_session_is_refused() -> None:
    leader = Leader(isr=[1])
    answer = leader.says(replace(first(7, 2), rows=row(3)), 10)

    assert answer.refused_codes.tolist() == [ErrorCode.STALE_BROKER_EPOCH]


def test_update_broker_registered_anew_ends_what_its_session_said() -> None:
    leader = Leader(isr=[1])
    message = first(7, 2)
    answer = leader.says(message, 10)
    leader.core.update(replayed(leader.image, registration(2, epoch=50, incarnation=1)), {1}, 11)

    assert leader.says(next_one(message, answer), 12).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert leader.wanted(13) == []


def test_answer_before_any_image_says_so() -> None:
    core = LeaderCore(StandInLog(0, 0), LAG_MAX_MS)

    assert core.answer(first(7, 2), 0.0, 0.0).error is ErrorCode.BROKER_NOT_AVAILABLE


def test_answer_any_number_of_unknown_brokers_leaves_no_session() -> None:
    leader = Leader(isr=[1])
    for session in range(100):
        leader.says(first(session, 500 + session), 10)

    assert leader.core.session_count == 0


def test_update_row_under_another_leader_epoch_is_told_of_anew() -> None:
    leader = Leader(isr=[1])
    message = first(7, 2)
    answer = leader.says(message, 10)
    leader.core.update(replayed(leader.image, change(0, 0, leader=1)), {1}, 11)
    leader.says(next_one(message, answer), 12)

    assert leader.wanted(13) == []


def test_attended_clock_stands_still_while_nobody_looks() -> None:
    times = iter([0.0, 400.0, 60_000.0, 60_100.0])
    clock = AttendedClock(lambda: next(times), gap_max_ms=1_000)

    assert [clock.now_ms(), clock.now_ms(), clock.now_ms()] == [400.0, 1_400.0, 1_500.0]
