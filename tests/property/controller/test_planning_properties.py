"""Plans of random clusters, held against rules and judgements written a second time, one partition after another."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorate.controller.planning.bounds import fewest_moves
from quorate.controller.planning.cluster import (
    BrokerRole,
    Brokers,
    ClusterLayout,
    ReassignmentPlan,
    TooFewBrokers,
    counts_of,
)
from quorate.controller.planning.levels import targets
from quorate.controller.planning.move_count import save_moves
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.planner import plan
from quorate.controller.planning.rules import kept
from quorate.controller.planning.validator import judge
from tests.random_clusters import random_cluster

SEEDS = st.integers(min_value=0, max_value=2**32)


def lists(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[int(one) for one in row if one >= 0] for row in rows]


def obeys(brokers: Brokers, before: list[int], after: list[int]) -> bool:
    """The rules of one partition, in words of their own."""
    roles, racks = brokers.roles.tolist(), brokers.racks.tolist()
    if len(after) != len(before) or len(set(after)) != len(after):
        return False
    if any(roles[one] == BrokerRole.DRAINS or (roles[one] == BrokerRole.KEEPS and one not in before) for one in after):
        return False
    may = [
        one
        for one in range(len(brokers))
        if roles[one] == BrokerRole.TAKES or (roles[one] == BrokerRole.KEEPS and one in before)
    ]
    return len({racks[one] for one in after}) == min(len(after), len({racks[one] for one in may}))


def improvable(brokers: Brokers, before: list[list[int]], after: list[list[int]], counts: list[int]) -> bool:
    """Whether replacements along a path would bring two brokers nearer that are two or more apart."""
    takers = [one for one in range(len(brokers)) if brokers.roles[one] == BrokerRole.TAKES]
    edges: dict[int, set[int]] = {one: set() for one in takers}
    for was, row in zip(before, after, strict=True):
        for source in set(row) & set(takers):
            for sink in set(takers) - set(row):
                if obeys(brokers, was, [sink if one == source else one for one in row]):
                    edges[source].add(sink)
    return two_apart(edges, counts)


def two_apart(edges: dict[int, set[int]], counts: list[int]) -> bool:
    for source in edges:
        reached, front = {source}, [source]
        while front:
            new = edges[front.pop()] - reached
            reached |= new
            front += new
        if any(counts[one] <= counts[source] - 2 for one in reached):
            return True
    return False


@given(SEEDS)
def test_plan_of_a_random_cluster_obeys_the_rules_and_is_as_even_as_any(seed: int) -> None:
    """Or there is none, where a partition has more replicas than there are brokers for them."""
    cluster = random_cluster(seed)
    brokers, before = cluster.brokers, lists(cluster.replicas.tolist())
    roles = brokers.roles.tolist()
    may = [
        sum(
            roles[one] == BrokerRole.TAKES or (roles[one] == BrokerRole.KEEPS and one in row)
            for one in range(len(brokers))
        )
        for row in before
    ]
    if any(len(row) > count for row, count in zip(before, may, strict=True)):
        with pytest.raises(TooFewBrokers):
            plan(cluster)
        return

    found = plan(cluster)
    after = lists(found.after.tolist())
    assert all(obeys(brokers, was, row) for was, row in zip(before, after, strict=True))
    assert not improvable(brokers, before, after, counts_of(found.after, len(brokers)).tolist())
    leads = counts_of(found.after[:, 0], len(brokers)).tolist()
    by_order: dict[int, set[int]] = {one: set() for one in range(len(brokers)) if roles[one] == BrokerRole.TAKES}
    for row in after:
        if row[0] in by_order:
            by_order[row[0]] |= set(row[1:]) & set(by_order)
    assert not two_apart(by_order, leads)


@given(SEEDS)
def test_verdict_and_bound_agree_with_the_plan(seed: int) -> None:
    """The validator finds nothing in a good plan, and no plan has fewer moves than the bound."""
    cluster = random_cluster(seed)
    try:
        found = plan(cluster)
    except TooFewBrokers:
        return
    verdict = judge(found)

    assert verdict.problems == ()
    assert verdict.are_replicas_evenest
    assert verdict.are_leaders_evenest
    assert fewest_moves(found) <= found.moves
    assert found.moves == sum(
        len(set(new) - set(old))
        for old, new in zip(lists(cluster.replicas.tolist()), lists(found.after.tolist()), strict=True)
    )


@given(SEEDS)
@example(4593)  # balancing brings a partition that has lost all its replicas one that can lead
def test_lost_replicas_change_no_count_and_no_bound_and_do_not_lead(seed: int) -> None:
    """A plan with lost replicas is as even in replicas as one without; leaders are as even as those that can lead."""
    cluster = random_cluster(seed)
    lost = (np.random.default_rng(seed).random(cluster.replicas.shape) < 0.3) & (cluster.replicas >= 0)
    cluster = replace(cluster, lost=lost)
    try:
        found = plan(cluster)
    except TooFewBrokers:
        return
    verdict = judge(found)
    brokers = cluster.brokers
    takers = {one for one in range(len(brokers)) if brokers.roles[one] == BrokerRole.TAKES}
    by_order: dict[int, set[int]] = {one: set() for one in takers}
    was_lost = [
        {int(one) for one, is_lost in zip(row, flags, strict=True) if is_lost}
        for row, flags in zip(cluster.replicas, lost, strict=True)
    ]
    for row, gone in zip(lists(found.after.tolist()), was_lost, strict=True):
        could = set(row) & takers - gone
        assert not could or row[0] not in gone
        if row[0] in takers:
            by_order[row[0]] |= could - {row[0]}

    assert verdict.problems == ()
    assert verdict.are_replicas_evenest
    assert verdict.are_leaders_evenest
    assert not two_apart(by_order, counts_of(found.after[:, 0], len(brokers)).tolist())
    assert fewest_moves(found) <= found.moves
    without = plan(replace(cluster, lost=None))
    assert sorted(counts_of(found.after, len(brokers))) == sorted(counts_of(without.after, len(brokers)))
    assert takes_from_those_that_keep(found) or fewest_moves(found) == fewest_moves(without)


@given(SEEDS)
def test_plan_of_a_planned_cluster_has_no_move(seed: int) -> None:
    """What is even stays: an operator who plans again after the plan was carried out has nothing to do."""
    cluster = random_cluster(seed)
    try:
        found = plan(cluster)
    except TooFewBrokers:
        return
    again = plan(ClusterLayout(cluster.brokers, found.after, cluster.sizes))

    assert again.moves == 0


@given(SEEDS, st.integers(min_value=0, max_value=10**6), st.integers(min_value=0, max_value=8))
def test_broken_plan_is_refused_by_the_validator(seed: int, place: int, broker: int) -> None:
    """One replica elsewhere: the validator refuses it exactly where the rules do."""
    cluster = random_cluster(seed)
    try:
        found = plan(cluster)
    except TooFewBrokers:
        return
    brokers = cluster.brokers
    after = found.after.copy()
    row = place % len(after)
    column = place % int(cluster.widths[row])
    after[row, column] = broker % len(brokers)
    before, broken = lists(cluster.replicas.tolist()), lists(after.tolist())
    is_sound = all(obeys(brokers, was, becomes) for was, becomes in zip(before, broken, strict=True))

    assert (judge(ReassignmentPlan(cluster, after)).problems == ()) == is_sound


@given(SEEDS)
def test_moves_of_a_tiny_cluster_are_not_below_the_bound_nor_far_above_the_best(seed: int) -> None:
    """Four brokers and four partitions: all placements are tried. The bound holds for the best of them."""
    cluster = tiny_cluster(seed)
    found = plan(cluster)
    best = best_moves(cluster, found)

    assert fewest_moves(found) <= best <= found.moves <= best + 3


@given(SEEDS)
def test_bound_of_a_tiny_cluster_is_the_best_there_is_where_leaders_do_not_matter(seed: int) -> None:
    """Of all placements with replica counts as even, however leaders are spread. It is no bound only, it is reached."""
    cluster = tiny_cluster(seed)
    found = plan(cluster)

    assert fewest_moves(found) == best_moves(cluster, found, with_leaders=False)


@given(SEEDS)
def test_plan_needs_more_than_the_bound_only_for_leaders(seed: int) -> None:
    """Or where replicas must leave brokers that keep theirs: there the bound knows less."""
    cluster = random_cluster(seed)
    try:
        found = plan(cluster)
    except TooFewBrokers:
        return
    if takes_from_those_that_keep(found):
        return
    placement = ReplicaPlacement(cluster, targets(cluster), found.after)
    save_moves(placement)

    assert ReassignmentPlan(cluster, placement.replicas).moves == fewest_moves(found)


def takes_from_those_that_keep(found: ReassignmentPlan) -> bool:
    """Whether a rack has a replica too many on brokers that keep theirs, so that one of them has to go."""
    after = ClusterLayout(found.before.brokers, found.after)
    return int(np.count_nonzero(kept(found.before))) > int(np.count_nonzero(kept(after)))


def tiny_cluster(seed: int) -> ClusterLayout:
    chance = np.random.default_rng(seed)
    racks = {one: f"r{chance.integers(3)}" for one in range(4)}
    brokers = Brokers.of(racks, {3: BrokerRole(int(chance.integers(3)))})
    return ClusterLayout.of(brokers, [chance.permutation(4)[: chance.integers(1, 3)].tolist() for _ in range(4)])


def best_moves(cluster: ClusterLayout, found: ReassignmentPlan, *, with_leaders: bool = True) -> int:
    """Return the fewest moves to a placement under the rules that is as even as one found: row by row, by counts."""
    brokers = cluster.brokers
    takers = np.flatnonzero(brokers.takers).tolist()

    def shape(loads: Sequence[int], leads: Sequence[int]) -> tuple[list[int], list[int]]:
        return sorted(loads[one] for one in takers), sorted(leads[one] for one in takers)

    none = (0,) * len(brokers)
    states = {(none, none): 0}
    for row in lists(cluster.replicas.tolist()):
        following: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for placed in permutations(range(len(brokers)), len(row)):
            if obeys(brokers, row, list(placed)):
                for (loads, leads), moves in states.items():
                    key = (
                        tuple(count + (at in placed) for at, count in enumerate(loads)),
                        tuple(count + (with_leaders and at == placed[0]) for at, count in enumerate(leads)),
                    )
                    total = moves + len(set(placed) - set(row))
                    following[key] = min(total, following.get(key, total))
        states = following
    leads_found = counts_of(found.after[:, 0], len(brokers)).tolist() if with_leaders else none
    wanted = shape(counts_of(found.after, len(brokers)).tolist(), leads_found)
    return min(moves for (loads, leads), moves in states.items() if shape(loads, leads) == wanted)
