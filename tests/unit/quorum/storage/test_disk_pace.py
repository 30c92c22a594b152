"""When disk work may run on the loop thread."""

from quorate.quorum.storage.disk_pace import DiskPace


def test_pace_of_a_quick_disk_stays_on_the_loop() -> None:
    pace = DiskPace()
    assert pace.is_quick(0.0)
    for number in range(100):
        pace.took(number, number + 0.0009)
    assert pace.is_quick(100.0)


def test_pace_after_slow_work_leaves_the_loop_for_many_times_as_long() -> None:
    pace = DiskPace()
    pace.took(10.0, 10.021)
    assert not pace.is_quick(10.021)
    assert not pace.is_quick(11.02)
    assert pace.is_quick(11.03)


def test_pace_after_work_that_was_hardly_slow_is_back_at_once() -> None:
    pace = DiskPace()
    pace.took(10.0, 10.0012)
    assert not pace.is_quick(10.0012)
    assert pace.is_quick(10.012)


def test_pace_of_a_disk_that_stays_slow_costs_the_loop_a_few_per_cent() -> None:
    """Every try takes 30 ms; the loop makes one whenever it may."""
    pace, now, lost = DiskPace(), 0.0, 0.0
    while now < 60.0:
        if pace.is_quick(now):
            pace.took(now, now + 0.03)
            lost += 0.03
        now += 0.03
    assert lost / now < 0.025
