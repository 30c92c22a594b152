"""Standstills of an event loop: what is counted, by how long and by which cause."""

import asyncio
import time

import pytest

from quorate.metadata_log.standstills import LONG_S, STANDSTILL_BUCKETS, Standstills, StandstillWatch
from tests.waiting import eventually


def counted(found: Standstills, cause: str) -> dict[str, float]:
    """Standstills of a cause in each bucket that has any, by its upper end."""
    buckets = found.by_cause[cause].buckets()
    before = [0.0, *(count for _, count in buckets)]
    return {end: count - less for (end, count), less in zip(buckets, before, strict=False) if count > less}


def test_what_is_short_is_none() -> None:
    found = Standstills()

    found.note(0.0049, 0.0049)
    found.note(-0.01, 0.0)

    assert counted(found, "work") == counted(found, "waiting") == {}


@pytest.mark.parametrize(("worked_s", "cause"), [(0.03, "work"), (0.02, "work"), (0.0199, "waiting"), (0.0, "waiting")])
def test_a_loop_that_was_on_a_processor_for_half_of_it_was_at_work(worked_s: float, cause: str) -> None:
    found = Standstills()

    found.note(0.04, worked_s)

    assert counted(found, cause) == {"0.05": 1.0}
    assert sum(found.by_cause[each].total_seconds for each in found.by_cause) == pytest.approx(0.04)


def test_the_longest_ones_have_a_bucket() -> None:
    found = Standstills()

    found.note(STANDSTILL_BUCKETS[-1] + 1, 0.0)

    assert counted(found, "waiting") == {"+Inf": 1.0}


async def test_a_loop_that_is_kept_is_seen() -> None:
    found = Standstills()
    watch = StandstillWatch(found)

    def work() -> None:
        ends_at = time.thread_time() + 0.06
        while time.thread_time() < ends_at:
            pass

    async def seen() -> list[str]:
        # On a machine with other work the loop waits for a processor for most of the time.
        return [*counted(found, "work"), *counted(found, "waiting")]

    asyncio.get_running_loop().call_soon(work)
    await eventually(seen, "the loop's work is seen")
    watch.close()

    assert any(float(end) >= 0.05 for end in await seen())


def test_long_standstill_has_just_ended_for_a_while_whether_the_timer_had_its_turn_or_not() -> None:
    found = Standstills()
    assert found.just_ended(1_000.0) == 0.0, "nobody looks"
    found.note_look(50.0, 0.0)
    assert found.just_ended(90.0) == 0.0, "nobody can have sent anything"
    found.note_look(90.0, 40.0)
    assert found.just_ended(90.0) == 0.0
    found.open(98.0)
    found.note_look(99.0, 9.0)
    assert found.just_ended(99.0) == 0.0
    found.note_look(100.0, 0.0)
    assert found.just_ended(100.0 + LONG_S - 0.1) == 0.0
    assert found.just_ended(150.0) == 50.0
    found.note_look(150.0, 49.99)
    assert [found.just_ended(now) for now in (150.0, 150.9, 151.1)] == [49.99, 49.99, 0.0]
    found.note_look(152.0, 1.0)
    assert found.just_ended(152.0) == 0.0


async def test_who_watches_tells_when_the_loop_was_looked_at() -> None:
    now_s = [10.0]
    found = Standstills()
    found.open(10.0)
    watch = StandstillWatch(found, now_s=lambda: now_s[0])
    assert found.just_ended(10.0) == 0.0
    now_s[0] = 40.0
    assert found.just_ended(40.0) == 30.0

    async def is_looked_at() -> bool:
        return found.just_ended(40.0) < 30.0

    await eventually(is_looked_at, "the timer had its turn")
    assert found.just_ended(40.0) == pytest.approx(29.99)
    watch.close()
