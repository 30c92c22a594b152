"""Sessions of the feed's readers: who has one, what is counted in it, when it ends, how much it can come to."""

from __future__ import annotations

import pytest

from quorate.controller.feed import sessions as module
from quorate.controller.feed.sessions import SILENT_SECONDS_MAX, CommitTimes, FeedSession, FeedSessions, Reader
from quorate.controller.feed.under_way import ChunksUnderWay
from tests.unit.controller.feed.feed_log import FollowedLog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def broker(broker_id: int | None, hosted: int = 1) -> Reader:
    return Reader(broker_id, hosted, f"127.0.0.1:{broker_id}")


def send(sessions: FeedSessions, session: FeedSession, base_offset: int, end_offset: int, size: int = 100) -> None:
    """A chunk that is taken at once."""
    sessions.begin_chunk(session, size)
    sessions.took(session, size)
    sessions.gave_up(session, 0, is_cut_off=False)
    sessions.sent(session, base_offset, end_offset)


def test_session_of_a_broker_is_found_again_with_every_fetch() -> None:
    sessions = FeedSessions(Clock())
    with sessions.serving(broker(7, hosted=4), 10) as first:
        assert (first.in_flight, first.position) == (1, 10)
        send(sessions, first, 10, 12)
        with sessions.serving(broker(7, hosted=4), 12) as second:
            assert (second is first, second.in_flight) == (True, 2)
    assert (first.in_flight, first.position, first.bytes_sent, first.chunks_sent) == (0, 12, 100, 1)
    assert sessions.named() == [first]
    assert first.reader.hosted_brokers == 4


def test_sessions_of_readers_without_a_name_are_one() -> None:
    sessions = FeedSessions(Clock())
    with sessions.serving(broker(None), 3) as one, sessions.serving(broker(None), 5) as other:
        assert one is other is sessions.unnamed
        assert one.in_flight == 2
    assert sessions.named() == []


def test_sessions_beyond_the_most_are_counted_as_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSIONS_MAX", 2)
    sessions = FeedSessions(Clock())
    for broker_id in (9, 8, 7, 8):
        with sessions.serving(broker(broker_id), 0) as session:
            send(sessions, session, 0, 1)
    assert [session.reader.broker_id for session in sessions.named()] == [8, 9]
    assert sessions.unnamed.chunks_sent == 1


def test_session_ends_when_its_broker_has_gone() -> None:
    clock = Clock()
    sessions = FeedSessions(clock)
    with sessions.serving(broker(1), 0):
        pass
    with sessions.serving(broker(2), 0):
        clock.now += SILENT_SECONDS_MAX + 1
        assert [session.reader.broker_id for session in sessions.named()] == [2], "it is being served"
    # The next fetch of anybody finds it as well, without anybody looking.
    clock.now += SILENT_SECONDS_MAX + 1
    with sessions.serving(broker(3), 0):
        assert len(sessions._named) == 1


def test_session_is_silent_while_it_does_not_take_and_not_while_it_waits() -> None:
    clock = Clock()
    sessions = FeedSessions(clock)
    with sessions.serving(broker(1), 0) as session:
        clock.now += 5
        assert session.silent_seconds(clock.now) == 0
        sessions.begin_chunk(session, 300)
        sessions.took(session, 100)
        clock.now += 2
        assert (session.silent_seconds(clock.now), session.unsent_bytes) == (2, 200)
        sessions.gave_up(session, 200, is_cut_off=True)
    assert (session.unsent_bytes, session.bytes_sent, session.cut_off, session.chunks_sent) == (0, 100, 1, 0)


def test_queue_time_runs_from_the_commit_until_the_socket_has_taken_it() -> None:
    clock = Clock()
    sessions = FeedSessions(clock)
    sessions.committed(10)
    with sessions.serving(broker(1), 10) as session:
        clock.now += 1
        sessions.committed(11)
        clock.now += 1
        sessions.committed(12)
        clock.now += 0.5
        send(sessions, session, 10, 12)
    assert (session.queue_seconds, session.queue_count, session.queue_seconds_last) == (1.5, 1, 1.5)
    assert (sum(sessions.queue_times.counts), sessions.queue_times.total_seconds) == (1, 1.5)


def test_queue_time_leaves_out_what_was_committed_before_the_session() -> None:
    clock = Clock()
    sessions = FeedSessions(clock)
    for end_offset in (5, 10, 15):
        sessions.committed(end_offset)
        clock.now += 60
    with sessions.serving(broker(1), 0) as session:
        for base_offset in (0, 5, 10):
            send(sessions, session, base_offset, base_offset + 5)
    assert (session.chunks_sent, session.queue_count) == (3, 0)


def test_commit_times_keep_the_newer_ones_and_know_nothing_of_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMITS_KEPT", 8)
    times = CommitTimes()
    for end_offset in range(2, 200, 2):
        times.note(end_offset, float(end_offset))
        times.note(end_offset, 9999.0)
        assert len(times._ends) <= 8
    assert [times.of(offset) for offset in (0, 150, 196, 197, 198, 500)] == [None, None, 198.0, 198.0, None, None]
    assert [times.of(offset) for offset in (194, 195)] == [196.0, 196.0]


class Piece:
    def __init__(self, size: int) -> None:
        self.data = bytes(size)


def test_chunk_that_goes_to_many_counts_once_while_it_is_under_way() -> None:
    under_way, shared, other = ChunksUnderWay(), Piece(100), Piece(7)
    with under_way.holding(shared), under_way.holding(shared), under_way.holding(other):
        assert under_way.bytes == 107
        with under_way.holding(shared):
            assert under_way.bytes == 107
    assert under_way.bytes == 0


async def test_feed_makes_small_chunks_while_much_is_under_way() -> None:
    log = FollowedLog()
    log.commit(2_000, epoch=1)
    whole = await log.fetch(0, 0, 0, 8_000_000)
    assert len(whole.data) > 65_536
    with log.feed.under_way.holding(Piece(33 * 1024 * 1024)):
        assert len((await log.fetch(0, 0, 0, 8_000_000)).data) <= 65_536
    assert len((await log.fetch(0, 0, 0, 8_000_000)).data) == len(whole.data)


def test_bytes_behind_a_reader_are_those_of_the_committed_batches_from_there_on() -> None:
    log = FollowedLog()
    log.commit(40, epoch=1)
    log.append(3)
    for offset in (0, 1, 17, 39, 40):
        assert log.feed.bytes_behind(offset) == len(log.data(offset, 40))
        assert log.feed.records_behind(offset) == 40 - offset
    assert (log.feed.bytes_behind(99), log.feed.records_behind(99)) == (0, 0)
    log.commit(0)
    log.begin_at(20)
    assert log.feed.bytes_behind(5) == len(log.data(20, 43))
