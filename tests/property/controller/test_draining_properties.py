"""Drains and replication factors of random clusters, held against the rules written a second time, row by row."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.planning.cluster import (
    BrokerRole,
    Brokers,
    ClusterLayout,
    ReassignmentPlan,
    TooFewBrokers,
    counts_of,
)
from quorate.controller.planning.draining import plan_drain
from quorate.controller.planning.widths import plan_widths
from tests.property.controller.test_planning_properties import SEEDS, lists, two_apart
from tests.random_clusters import random_cluster

WIDTHS = st.integers(min_value=1, max_value=6)


def of_role(brokers: Brokers, role: BrokerRole) -> set[int]:
    return {one for one in range(len(brokers)) if brokers.roles[one] == role}


def racks(brokers: Brokers, row: set[int]) -> set[int]:
    return {int(brokers.racks[one]) for one in row}


def rows_of(plan: ReassignmentPlan) -> Iterator[tuple[list[int], list[int]]]:
    return zip(lists(plan.before.replicas.tolist()), lists(plan.after.tolist()), strict=True)


def drained_or_none(cluster: ClusterLayout) -> ReassignmentPlan | None:
    """The plan; None where a partition has more replicas than there are brokers for it, which is told."""
    takers, drained = of_role(cluster.brokers, BrokerRole.TAKES), of_role(cluster.brokers, BrokerRole.DRAINS)
    may = [len(takers | set(row) - drained) for row in lists(cluster.replicas.tolist())]
    if all(len(row) <= count for row, count in zip(lists(cluster.replicas.tolist()), may, strict=True)):
        return plan_drain(cluster)
    with pytest.raises(TooFewBrokers):
        plan_drain(cluster)
    return None


class Drain(NamedTuple):
    """A drain that there is a plan for; brokers by their place."""

    brokers: Brokers
    takers: set[int]
    drained: set[int]
    plan: ReassignmentPlan


def random_drain(seed: int) -> Drain | None:
    cluster = random_cluster(seed)
    found = drained_or_none(cluster)
    if found is None:
        return None
    brokers = cluster.brokers
    return Drain(brokers, of_role(brokers, BrokerRole.TAKES), of_role(brokers, BrokerRole.DRAINS), found)


@given(SEEDS)
def test_drain_moves_what_stands_on_drained_brokers_and_nothing_else(seed: int) -> None:
    """As many replicas as before, none twice, none on a drained broker, new ones on those that take them."""
    drain = random_drain(seed)
    if drain is None:
        return
    _, takers, drained, found = drain
    gone = 0
    for before, after in rows_of(found):
        stay = [one for one in before if one not in drained]
        gone += len(before) - len(stay)
        assert len(after) == len(before) == len(set(after))
        assert set(stay) <= set(after)
        assert set(after) - set(stay) <= takers
        if before[0] not in drained:
            assert [new for old, new in zip(before, after, strict=True) if old not in drained] == stay
    assert found.moves == gone


@given(SEEDS)
def test_drain_leaves_partitions_in_as_many_racks_as_its_moves_can(seed: int) -> None:
    """No other brokers for the same replicas would put a partition into more racks."""
    drain = random_drain(seed)
    if drain is None:
        return
    brokers, takers, drained, found = drain
    for before, after in rows_of(found):
        stay = set(before) - drained
        most = min(len(racks(brokers, stay)) + len(before) - len(stay), len(racks(brokers, stay | takers)))
        assert len(racks(brokers, set(after))) == most


@given(SEEDS)
def test_drain_is_as_even_as_what_it_moves_allows(seed: int) -> None:
    """No path of other places for what came leads from a broker to one with two less; the same of drained leaders."""
    drain = random_drain(seed)
    if drain is None:
        return
    brokers, takers, drained, found = drain
    edges: dict[int, set[int]] = {one: set() for one in takers}
    by_order: dict[int, set[int]] = {one: set() for one in takers}
    for before, after in rows_of(found):
        for source in set(after) - set(before):
            rest = set(after) - {source}
            for sink in takers - set(after):
                if len(racks(brokers, rest | {sink})) >= len(racks(brokers, set(after))):
                    edges[source].add(sink)
        if before[0] in drained and after[0] in takers:
            by_order[after[0]] |= set(after) & takers - {after[0]}
    assert not two_apart(edges, counts_of(found.after, len(brokers)).tolist())
    assert not two_apart(by_order, counts_of(found.after[:, 0], len(brokers)).tolist())


@given(SEEDS)
def test_drain_of_its_partitions_alone_gives_the_counts_of_the_whole_cluster(seed: int) -> None:
    """What brokers have besides is told as counts: a drain need not look at partitions that it leaves as they are."""
    cluster = random_cluster(seed)
    found = drained_or_none(cluster)
    if found is None:
        return
    count = len(cluster.brokers)
    is_touched = (np.append(cluster.brokers.roles == BrokerRole.DRAINS, False)[cluster.replicas]).any(axis=1)
    others = cluster.replicas[~is_touched]
    part = ClusterLayout(
        cluster.brokers,
        cluster.replicas[is_touched],
        other_loads=counts_of(others, count),
        other_leads=counts_of(others[:, 0], count),
    )
    alone = plan_drain(part).after
    together = plan_drain(ClusterLayout(cluster.brokers, cluster.replicas)).after
    assert sorted(counts_of(alone, count) + counts_of(others, count)) == sorted(counts_of(together, count))


@given(SEEDS, WIDTHS)
def test_replication_factor_is_reached_without_moving_what_may_stay(seed: int, width: int) -> None:
    """Rows that are narrower get brokers that take replicas, wider ones lose some; the others are as they were."""
    cluster = without_drained(random_cluster(seed))
    brokers = cluster.brokers
    takers = of_role(brokers, BrokerRole.TAKES)
    too_narrow = [row for row in lists(cluster.replicas.tolist()) if len(takers | set(row)) < width]
    if any(len(row) < width for row in too_narrow):
        with pytest.raises(TooFewBrokers):
            plan_widths(cluster, width)
        return
    found = plan_widths(cluster, width)
    for before, after in rows_of(found):
        assert len(after) == len(set(after)) == width
        if len(before) <= width:
            assert after[: len(before)] == before
            assert set(after[len(before) :]) <= takers
            most = min(len(racks(brokers, set(before))) + width - len(before), len(racks(brokers, {*before, *takers})))
            assert len(racks(brokers, set(after))) == most
        else:
            assert after == [one for one in before if one in after]


@given(SEEDS, WIDTHS)
def test_replicas_that_help_least_go_first(seed: int, width: int) -> None:
    """Those out of sync, then those on brokers that take none; where all are well, racks and who is preferred stay."""
    cluster = without_drained(random_cluster(seed))
    brokers = cluster.brokers
    keeps = of_role(brokers, BrokerRole.KEEPS)
    held = cluster.replicas >= 0
    out_of_sync = (np.random.default_rng(seed).random(cluster.replicas.shape) < 0.2) & held
    wide = cluster.widths > width
    part = ClusterLayout(brokers, cluster.replicas[wide], sizes=None)
    found = plan_widths(part, width, out_of_sync[wide])
    for (before, after), flags in zip(rows_of(found), out_of_sync[wide].tolist(), strict=True):
        stale = {one for one, is_stale in zip(before, flags, strict=False) if is_stale}
        sound = [one for one in before if one not in stale]
        assert len(stale & set(after)) == max(0, width - len(sound))
        alive = [one for one in sound if one not in keeps]
        if len(sound) >= width:
            assert len(keeps & set(after)) == max(0, width - len(alive))
        if alive == before:
            assert len(racks(brokers, set(after))) == min(width, len(racks(brokers, set(before))))
            assert before[0] == after[0]


def without_drained(cluster: ClusterLayout) -> ClusterLayout:
    roles = np.where(cluster.brokers.roles == BrokerRole.DRAINS, BrokerRole.KEEPS, cluster.brokers.roles)
    brokers = cluster.brokers
    return ClusterLayout(
        Brokers(brokers.ids, brokers.racks, roles.astype(np.int8), brokers.rack_names), cluster.replicas
    )
