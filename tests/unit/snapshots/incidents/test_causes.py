"""Which broker event a loss goes back to."""

import numpy as np
import pytest

from quorate.snapshots.incidents.brokers import DIRECTORIES_LOST, FENCED, SHUTDOWN, STOPPED, UNFENCED, BrokerEvent
from quorate.snapshots.incidents.causes import CAUSES, NONE, BrokerTimeline

SECOND = 1_000_000


def event(kind: str, offset: int, seconds: float, broker: int = 7, cluster: str = "c") -> BrokerEvent:
    return BrokerEvent(cluster, broker, kind, offset, int(seconds * SECOND))


def cause_of(
    timeline: list[BrokerEvent], offset: int, seconds: float, broker: int = 7, cluster: str = "c"
) -> tuple[str | None, int]:
    codes, offsets = BrokerTimeline(timeline).losses(
        [cluster], np.array([broker]), np.array([offset]), np.array([int(seconds * SECOND)]), 5 * SECOND
    )
    return (None if codes[0] == NONE else CAUSES[codes[0]]), int(offsets[0])


def test_a_fencing_stands_behind_the_changes_that_it_makes() -> None:
    assert cause_of([event(UNFENCED, 1, 1), event(FENCED, 100, 50)], 90, 50) == (FENCED, 100)


def test_slices_of_a_long_pass_come_earlier_than_the_fencing() -> None:
    assert cause_of([event(FENCED, 100_000, 52)], 90, 50) == (FENCED, 100_000)


def test_a_controlled_shutdown_stands_before_and_is_nearer_in_time_than_its_end() -> None:
    timeline = [event(SHUTDOWN, 10, 50), event(STOPPED, 1_000, 52)]

    assert cause_of(timeline, 990, 50) == (SHUTDOWN, 10)


def test_a_broker_that_is_down_is_the_cause_however_long_ago_it_fell() -> None:
    timeline = [event(FENCED, 10, 50)]

    assert cause_of(timeline, 500, 500) == (FENCED, 10)
    assert cause_of([*timeline, event(UNFENCED, 400, 400)], 500, 500) == (None, NONE)


def test_a_lagging_follower_of_a_living_broker_has_no_broker_event() -> None:
    assert cause_of([event(UNFENCED, 1, 1), event(FENCED, 100, 50)], 20, 20) == (None, NONE)


@pytest.mark.parametrize(("broker", "cluster"), [(8, "c"), (7, "d"), (6, "c")])
def test_another_broker_or_cluster_is_no_cause(broker: int, cluster: str) -> None:
    assert cause_of([event(FENCED, 100, 50), event(FENCED, 99, 50, 8, "e")], 90, 50, broker, cluster) == (None, NONE)


def test_a_timeline_without_events_explains_nothing() -> None:
    assert cause_of([], 90, 50) == (None, NONE)


def test_columns_are_answered_place_by_place() -> None:
    timeline = BrokerTimeline([event(FENCED, 100, 50), event(DIRECTORIES_LOST, 30, 20, 8)])

    codes, offsets = timeline.losses(
        ["c"] * 3, np.array([8, 7, 9]), np.array([29, 99, 99]), np.array([20, 50, 50]) * SECOND, SECOND
    )

    assert [None if code == NONE else CAUSES[code] for code in codes] == [DIRECTORIES_LOST, FENCED, None]
    assert offsets.tolist() == [30, 100, NONE]
