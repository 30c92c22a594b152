"""Questions about many partitions: counts tell what is wrong, and only where something is are partitions looked for."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from quorate.controller.answers import scope as scopes
from quorate.controller.answers.explain import explain
from quorate.controller.answers.scope import Scope
from quorate.controller.reads.partition_conditions import is_in
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import counted_rows
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import cluster_image, partition, replayed
from tests.unit.controller.small_cluster import SmallCluster

SIZES = {"few": 10, "many": 6000, "some": 2500}
ALL = sum(SIZES.values())


@pytest.fixture(scope="module")
def cluster() -> SmallCluster:
    """Brokers 0 to 3, topics of which one lies across pages, and replicas of every second partition on broker 3."""
    cluster = SmallCluster(4)
    for name, size in SIZES.items():
        cluster.create(name, *([0, 1, 2 + number % 2] for number in range(size)))
    return cluster


@pytest.fixture
def pages_searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The condition that each page was searched for."""
    searched: list[str] = []

    def noted(page: Any, condition: Any, min_isrs: Any) -> Any:
        searched.append(condition)
        return is_in(page, condition, min_isrs)

    monkeypatch.setattr(scopes, "is_in", noted)
    return searched


def test_nothing_is_searched_while_nothing_is_wrong(cluster: SmallCluster, pages_searched: list[str]) -> None:
    found = explain(Scope.of_all(cluster.image), cluster.config, 10, {})

    assert (found.partitions, found.symptoms, pages_searched) == (ALL, [], [])


def test_each_page_is_searched_once_for_what_is_wrong(
    pages_searched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scopes, "_ROWS_AT_ONCE", 100)
    cluster = SmallCluster(4)
    for name, size in SIZES.items():
        cluster.create(name, *([0, 1, 2 + number % 2] for number in range(size)))
    cluster.heartbeat(3, want_fence=True)

    [symptom] = explain(Scope.of_all(cluster.image), cluster.config, 3, {}).symptoms

    assert pages_searched == ["under-replicated"] * len(cluster.image.partitions.pages)
    assert (symptom.partitions, symptom.topics, symptom.share) == (ALL // 2, len(SIZES), 0.5)
    assert [(one.broker, one.partitions) for one in symptom.causes] == [(3, ALL // 2)]
    assert sum(len(one.partitions) for one in symptom.named) == 3
    parts = list(Scope.of_all(cluster.image).parts(cluster.config, "under-replicated"))
    assert max(map(len, parts)) <= PAGE_ROWS
    assert len(np.unique(np.concatenate(parts))) == ALL // 2


def test_counts_of_some_partitions_are_those_of_all_where_these_are_all(cluster: SmallCluster) -> None:
    every = Scope.of_all(cluster.image)

    assert Scope.of_rows(cluster.image, cluster.image.partitions.all_rows()).tally == every.tally
    assert Scope.of_broker(cluster.image, 0).tally.partitions == every.tally.partitions
    assert len(Scope.of_broker(cluster.image, 3)) == ALL // 2
    assert len(Scope.of_broker(cluster.image, 9)) == 0
    assert len(Scope.of_rows(cluster.image, np.array([5, PAGE_ROWS + 1]))) == 2


def image_without(lost: int, chance: Random) -> MetadataImage:
    """Partitions of brokers 1 to 5, of which one is not in sync, or does not lead, everywhere."""
    cluster = cluster_image([1, 2, 3, 4, 5], [partition(0, 0, [1, 2])])
    records = []
    for number in range(1, chance.randint(2, 60)):
        replicas = chance.sample(range(1, 6), chance.randint(1, 4))
        isr = [broker for broker in replicas if broker != lost or chance.random() < 0.3] or replicas
        leader = -1 if isr == [lost] else chance.choice(isr)
        records.append(replace(partition(0, number, replicas), isr=tuple(isr), leader=leader))
    return replayed(cluster, *records)


def test_what_the_table_tells_of_a_broker_explains_what_counting_does() -> None:
    config = SmallCluster(1).config
    told = {True: 0, False: 0}
    for seed in range(60):
        image = image_without(3, Random(seed))
        for broker in range(1, 7):
            scope = Scope.of_broker(image, broker)
            tally = counted_rows(image.partitions, scope._parts(scope._flags))
            told[scope.tally == tally] += 1
            counted = Scope(image, scope._numbers, scope._flags, tally)
            assert explain(scope, config, 5, {}) == explain(counted, config, 5, {}), (seed, broker)
            assert len(scope) == len(counted)
    assert min(told.values()) > 40, told


def test_nothing_is_counted_where_only_the_broker_asked_about_misses_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SmallCluster(4)
    cluster.create("t", *([0, 1, 2 + number % 2] for number in range(100)))
    cluster.heartbeat(3, want_fence=True)
    monkeypatch.setattr(scopes, "counted_rows", None)
    [symptom] = explain(Scope.of_broker(cluster.image, 3), cluster.config, 3, {}).symptoms
    assert (symptom.partitions, symptom.share) == (50, 1.0)
    with pytest.raises(TypeError):
        Scope.of_broker(cluster.image, 0)
