"""What always holds of placement; tests/golden holds it against Kafka's, number for number."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.topics.placement import Racks, ReplicaPlacer, UsableBroker
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.conformance_runner.java_random import JavaRandom


@st.composite
def usable_brokers(draw: st.DrawFn) -> list[UsableBroker]:
    choices: list[list[str | None]] = [[None], ["a", "b"], ["a", "b", "c"], [None, "a", "b", "c", "d"]]
    racks = draw(st.sampled_from(choices))
    count = draw(st.integers(1, 12))
    return [UsableBroker(id_, draw(st.sampled_from(racks)), draw(st.booleans()) and id_ > 0) for id_ in range(count)]


@given(usable_brokers(), st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**48))
@settings(max_examples=200, deadline=None)
def test_placer_any_brokers_spreads_replicas(brokers: list[UsableBroker], count: int, factor: int, seed: int) -> None:
    factor = min(factor, len(brokers))
    rack_of = {broker.broker_id: broker.rack for broker in brokers}
    unfenced = {broker.broker_id for broker in brokers if not broker.is_fenced}
    placed = ReplicaPlacer(Racks(brokers), JavaRandom(seed)).place(count, factor).tolist()
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert replicas[0] in unfenced
        assert len({rack_of[broker] for broker in replicas}) == min(factor, len(set(rack_of.values())))


def test_racks_draw_random_numbers_in_the_order_of_a_java_hash_map() -> None:
    # Rounds walk them by name: none, b, p, q. Their hashes modulo 16 are 0, 2, 0 and 1.
    racks = Racks([UsableBroker(id_, rack, False) for id_, rack in enumerate(["b", None, "p", "q"])])
    assert racks.drawing == [0, 2, 3, 1]


@pytest.mark.parametrize("rack_count", [1, 3])
def test_placer_whole_rounds_lead_every_broker_equally(rack_count: int) -> None:
    brokers = [UsableBroker(id_, f"r{id_ % rack_count}", False) for id_ in range(6)]
    placed = ReplicaPlacer(Racks(brokers), JavaRandom(7)).place(60, 3)
    assert rack_count > 1 or set(Counter(placed[:, 0].tolist()).values()) == {10}
    assert sum(Counter(placed.ravel().tolist()).values()) == 180


@pytest.mark.parametrize(
    ("brokers", "factor", "part"),
    [
        ([UsableBroker(1, None, False)], 0, "must be positive"),
        ([UsableBroker(1, None, True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
        ([UsableBroker(1, None, False)], 2, "only 1 broker(s) are registered"),
    ],
)
def test_placer_impossible_request_is_refused(brokers: list[UsableBroker], factor: int, part: str) -> None:
    with pytest.raises(ApiError) as caught:
        ReplicaPlacer(Racks(brokers), JavaRandom(0)).place(0, factor)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert part in caught.value.message
