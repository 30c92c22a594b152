"""The planner case by case: what stays, what moves, and how far racks allow counts to be even."""

from quorate.controller.planning.cluster import Brokers, ClusterLayout, counts_of
from quorate.controller.planning.levels import targets
from quorate.controller.planning.planner import plan
from quorate.controller.planning.validator import judge

RACKS = {11: "a", 12: "b", 13: "a", 14: "b"}


def test_even_cluster_is_left_as_it_is() -> None:
    """Not even an order is changed."""
    cluster = ClusterLayout.of(Brokers.of(dict(RACKS)), [[11, 12], [12, 13], [13, 14], [14, 11]])

    assert len(plan(cluster).changed) == 0


def test_new_broker_gets_its_share_with_as_many_moves() -> None:
    """400 replicas on four brokers, a fifth comes: it gets 80, nothing else moves."""
    order = [[11, 12], [12, 13], [13, 14], [14, 11]]
    cluster = ClusterLayout.of(Brokers.of({**dict.fromkeys(range(11, 16))}), order * 50)
    found = plan(cluster)

    assert counts_of(found.after, 5).tolist() == [80] * 5
    assert counts_of(found.after[:, 0], 5).tolist() == [40] * 5
    assert found.moves == 80


def test_replicas_in_one_rack_are_parted_where_there_are_racks() -> None:
    """And where there are fewer racks than replicas, each rack has one at least."""
    brokers = Brokers.of(dict(RACKS))
    cluster = ClusterLayout.of(brokers, [[11, 13], [11, 12, 13], [12, 14]])
    found = plan(cluster)

    racks = [{int(brokers.racks[one]) for one in row if one >= 0} for row in found.after]
    assert racks == [{0, 1}] * 3
    assert found.moves == 2


def test_brokers_of_a_large_rack_get_less_where_the_rule_wants_it() -> None:
    """Three replicas over three racks: each rack has one of each partition, however many brokers it has."""
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "c", 5: "c"}
    cluster = ClusterLayout.of(Brokers.of(racks), [[1, 2, 3]] * 30)
    found = plan(cluster)

    assert targets(cluster).tolist() == [30, 30, 10, 10, 10]
    assert counts_of(found.after, 5).tolist() == [30, 30, 10, 10, 10]
    assert judge(found).are_replicas_evenest
    assert found.moves == 20


def test_leaders_of_single_replicas_are_evened_by_exchange() -> None:
    """All of 1's are led by it, as they have no other replica; all of 2's are led by 3."""
    cluster = ClusterLayout.of(Brokers.of({1: None, 2: None, 3: None}), [[1]] * 6 + [[3, 2]] * 6)
    found = plan(cluster)

    assert counts_of(found.after, 3).tolist() == [6, 6, 6]
    assert counts_of(found.after[:, 0], 3).tolist() == [4, 4, 4]
