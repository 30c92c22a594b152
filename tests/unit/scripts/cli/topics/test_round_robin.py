"""Spreading replicas over brokers: every rule of it, and the example that Kafka's documentation gives."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.scripts.cli.topics.round_robin import CannotSpread, RoundRobin


def test_partitions_of_a_topic_stand_as_in_the_example_of_kafka() -> None:
    """``AdminUtils``: ten partitions with three replicas on five brokers."""
    placed = RoundRobin(dict.fromkeys(range(5))).spread(10, 3)
    assert placed == [
        [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1],
        [0, 2, 3], [1, 3, 4], [2, 4, 0], [3, 0, 1], [4, 1, 2],
    ]  # fmt: skip


def test_brokers_of_racks_take_turns_as_in_the_example_of_kafka() -> None:
    """``AdminUtils``: six brokers in three racks; the leaders walk 0, 3, 1, 5, 4, 2."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = RoundRobin(racks).spread(7, 3)
    assert placed == [[0, 3, 1], [3, 1, 5], [1, 5, 4], [5, 4, 2], [4, 2, 0], [2, 0, 3], [0, 4, 2]]


def test_next_topic_starts_where_the_one_before_ended() -> None:
    spreading = RoundRobin(dict.fromkeys((11, 12, 13)))
    leaders = [replicas[0] for _ in range(3) for replicas in spreading.spread(2, 2)]
    assert leaders == [11, 12, 13, 11, 12, 13]


@given(
    racks=st.dictionaries(st.integers(0, 30), st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9),
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    data=st.data(),
)
def test_replicas_are_different_and_in_as_many_racks_as_can_be(
    racks: dict[int, str], sizes: list[int], data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    spreading = RoundRobin(racks)
    placed = [replicas for size in sizes for replicas in spreading.spread(size, factor)]
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in placed)
    counts = [leaders[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("racks", "factor"), [({1: None, 2: None}, 3), ({1: "a", 2: None}, 1)])
def test_what_cannot_be_spread_is_refused(racks: dict[int, str | None], factor: int) -> None:
    with pytest.raises(CannotSpread):
        RoundRobin(racks).spread(1, factor)
