"""ISRs that shrink and grow again and again."""

from datetime import timedelta
from typing import Any

from quorate.snapshots.incidents.thresholds import Thresholds
from tests.incident_versions import found_in, known, partition

OF = known(thresholds=Thresholds(flaps=1, flap_window=timedelta(seconds=20)))


def flaps(*times: int, broker: int = 3) -> list[tuple[int, dict[str, Any]]]:
    """The broker leaves one second before each of these times, and joins then."""
    others = [other for other in (1, 2, 3) if other != broker]
    return [
        change
        for time in times
        for change in ((time - 1, {"isr": others}), (time, {"isr": [*others, broker]}))
    ]  # fmt: skip


def test_flaps_within_the_time_count_together() -> None:
    (one,) = found_in("isr_flapping", partition((10, {}), *flaps(20, 30, 40, 100)), of=OF)

    assert (one["first_offset"], one["from_time"], one["to_time"]) == (20, 20, 100)
    assert (one["flaps"], one["most"], one["broker"]) == (4, 3, 3)


def test_what_stays_below_does_not_flap() -> None:
    assert found_in("isr_flapping", partition((10, {}), *flaps(20, 41, 62)), of=OF) == []


def test_the_whole_window_counts_with_its_first_moment() -> None:
    assert [one["most"] for one in found_in("isr_flapping", partition((10, {}), *flaps(20, 40)), of=OF)] == [2]


def test_whoever_came_back_most_often_is_named() -> None:
    changes = [*flaps(20, broker=2), *flaps(24, 28, broker=3)]
    (one,) = found_in("isr_flapping", partition((10, {}), *changes), of=OF)
    (tie,) = found_in("isr_flapping", partition((10, {}), *changes[:4]), of=OF)

    assert (one["broker"], tie["broker"]) == (3, 2)


def test_only_growth_after_a_loss_is_a_flap_and_of_one_partition() -> None:
    grows: list[tuple[int, dict[str, Any]]] = [(10, {"isr": [1]}), (12, {"isr": [1, 2]}), (14, {"isr": [1, 2, 3]})]
    shrinks: list[tuple[int, dict[str, Any]]] = [(10, {}), (12, {"isr": [1, 2]}), (14, {"isr": [1]})]

    of = known(thresholds=Thresholds(flaps=0))
    assert found_in("isr_flapping", partition(*shrinks), partition(*grows, number=1), of=of) == []


def test_other_changes_between_loss_and_growth_do_not_matter() -> None:
    rows = partition((10, {}), (12, {"isr": [1, 2]}), (13, {"leader": 2}), (14, {"isr": [1, 2, 3]}))

    of = known(thresholds=Thresholds(flaps=0))
    assert [one["flaps"] for one in found_in("isr_flapping", rows, of=of)] == [1]
