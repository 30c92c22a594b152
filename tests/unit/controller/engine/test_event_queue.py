"""The event queue: order, deadlines, timers, limits."""

from __future__ import annotations

import pytest

from quorate.controller.engine.event_queue import (
    EVENTS_PER_TURN_MAX,
    TURN_MS_MAX,
    URGENT_IN_A_ROW_MAX,
    Event,
    EventQueue,
)
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from tests.unit.controller.manual_scheduler import ManualScheduler


class Story:
    """A queue and what happened in it."""

    def __init__(self, length_max: int = 1000) -> None:
        self.scheduler = ManualScheduler()
        self.told: list[str] = []
        self.errors: list[Exception] = []
        self.queue = EventQueue(self.scheduler, length_max, lambda: self.told.append("|"))

    def event(
        self, name: str, *, deadline_ms: float | None = None, is_external: bool = False, is_urgent: bool = False
    ) -> Event:
        run = lambda: self.told.append(name)  # noqa: E731
        return Event(name, run, self.errors.append, deadline_ms, is_external, is_urgent)


def test_event_queue_appended_events_run_in_order_and_share_a_turn() -> None:
    story = Story()
    for name in "abc":
        story.queue.append(story.event(name))
    story.scheduler.run()
    assert story.told == ["a", "b", "c", "|"]


def test_event_queue_prepended_event_runs_before_all_that_waits() -> None:
    story = Story()
    story.queue.append(story.event("a"))
    story.queue.prepend(story.event("activation"))
    story.scheduler.run()
    assert story.told == ["activation", "a", "|"]


def test_event_queue_urgent_event_runs_before_all_but_what_was_prepended() -> None:
    story = Story()
    for name in "ab":
        story.queue.append(story.event(name))
    story.queue.append(story.event("heartbeat", is_urgent=True))
    story.queue.append(story.event("second", is_urgent=True))
    story.queue.prepend(story.event("rest of a pass"))
    assert (len(story.queue), story.queue.next_name) == (5, "rest of a pass")
    story.scheduler.run()
    assert story.told == ["rest of a pass", "heartbeat", "second", "a", "b", "|"]


def test_event_queue_urgent_events_do_not_keep_all_others_waiting() -> None:
    story = Story()
    for name in "ab":
        story.queue.append(story.event(name))
    for _ in range(2 * URGENT_IN_A_ROW_MAX + 1):
        story.queue.append(story.event("u", is_urgent=True))
    story.scheduler.run()
    rows = "".join(story.told).rstrip("|").split("a")
    assert [len(rows[0]), *map(len, rows[1].split("b"))] == [URGENT_IN_A_ROW_MAX, URGENT_IN_A_ROW_MAX, 1]


def test_event_queue_says_which_event_runs_next_also_behind_many_urgent_ones() -> None:
    story = Story()
    foretold: list[str | None] = []
    story.queue.observe = lambda *_: foretold.append(story.queue.next_name)
    story.queue.append(story.event("a"))
    for _ in range(URGENT_IN_A_ROW_MAX + 1):
        story.queue.append(story.event("u", is_urgent=True))
    story.queue.prepend(story.event("first"))
    assert story.queue.next_name == "first"
    story.scheduler.run()
    assert [*foretold, "|"] == [*story.told[1:-1], None, "|"]


def test_event_queue_many_events_are_spread_over_turns() -> None:
    story = Story()
    for _ in range(EVENTS_PER_TURN_MAX + 1):
        story.queue.append(story.event("x"))
    story.scheduler.run()
    assert story.told.count("|") == 2


def test_event_queue_event_that_ends_the_turn_lets_the_rest_wait() -> None:
    story = Story()
    story.queue.append(Event("slice", story.queue.end_turn, story.errors.append))
    story.queue.append(story.event("next"))
    assert story.scheduler.run_turn()
    assert story.told == ["|"]
    story.scheduler.run()
    assert story.told == ["|", "next", "|"]


def test_event_queue_turn_that_has_taken_long_begins_no_other_event() -> None:
    story = Story()

    def work_long() -> None:
        story.told.append("bulk")
        story.scheduler.now_ms += TURN_MS_MAX

    for _ in range(2):
        story.queue.append(Event("bulk", work_long, story.errors.append))
    story.scheduler.run()
    assert story.told == ["bulk", "|", "bulk", "|"]


def test_event_queue_event_past_its_deadline_fails_unstarted() -> None:
    story = Story()
    story.queue.append(story.event("late", deadline_ms=5))
    story.scheduler.now_ms = 6
    story.scheduler.run()
    assert story.told == ["|"]
    assert isinstance(story.errors[0], ApiError)
    assert story.errors[0].code is ErrorCode.REQUEST_TIMED_OUT
    assert "nothing was changed" in str(story.errors[0])
    assert story.queue.timed_out.total() == 1


def test_event_queue_event_at_its_deadline_still_runs() -> None:
    story = Story()
    story.queue.append(story.event("due", deadline_ms=5))
    story.scheduler.now_ms = 5
    story.scheduler.run()
    assert story.told == ["due", "|"]


def test_event_queue_over_its_limit_refuses_external_events_only() -> None:
    story = Story(length_max=1)
    story.queue.append(story.event("first", is_external=True))
    with pytest.raises(Overloaded, match="1 is the most"):
        story.queue.append(story.event("second", is_external=True))
    story.queue.append(story.event("internal"))
    story.scheduler.run()
    assert story.told == ["first", "internal", "|"]
    story.queue.append(story.event("third", is_external=True))


def test_event_queue_over_its_limit_says_when_there_will_be_room_by_its_pace() -> None:
    story = Story(length_max=400)

    def append() -> None:
        story.queue.append(story.event("x", is_external=True))

    for _ in range(400):
        append()
    with pytest.raises(Overloaded) as nobody_knows_yet:
        append()
    assert "retry_after_ms" not in nobody_knows_yet.value.details
    story.scheduler.run_turn()  # 256 of them, and the loop was at its sockets until the next one
    story.scheduler.now_ms += 512
    story.scheduler.run_turn()
    for _ in range(400):
        append()
    told = []
    for _ in range(3):
        with pytest.raises(Overloaded) as refused:
            append()
        told.append(refused.value.details["retry_after_ms"])
    assert told == [802, 804, 806], "2 ms each, and nobody comes at the moment of another"


def test_event_queue_timer_fires_once_at_the_earlier_time() -> None:
    story = Story()
    story.queue.schedule("tag", 100, lambda: story.event("later"))
    story.queue.schedule("tag", 50, lambda: story.event("earlier"))
    story.queue.schedule("tag", 70, lambda: story.event("between"))
    story.scheduler.advance(200)
    assert story.told == ["earlier", "|"]


def test_event_queue_timer_moved_to_the_later_time_on_request() -> None:
    story = Story()
    story.queue.schedule("tag", 50, lambda: story.event("old"))
    story.queue.schedule("tag", 100, lambda: story.event("new"), keep_earlier=False)
    story.scheduler.advance(60)
    assert story.told == []
    story.scheduler.advance(60)
    assert story.told == ["new", "|"]


def test_event_queue_cancelled_timer_never_fires() -> None:
    story = Story()
    story.queue.schedule("tag", 50, lambda: story.event("never"))
    story.queue.cancel("tag")
    story.scheduler.advance(100)
    assert story.told == []


def test_event_queue_closed_fails_what_waits_and_what_comes() -> None:
    story = Story()
    story.queue.append(story.event("waiting"))
    story.queue.schedule("tag", 50, lambda: story.event("never"))
    story.queue.close()
    story.queue.append(story.event("late"))
    story.scheduler.advance(100)
    assert story.told == ["|"]
    assert len(story.errors) == 2
    assert all("shutting down" in str(error) for error in story.errors)
