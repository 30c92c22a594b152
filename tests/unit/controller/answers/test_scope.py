"""Questions about many partitions: counts tell what is wrong, and only where something is are partitions looked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quorate.controller.answers import scope as scopes
from quorate.controller.answers.explain import explain
from quorate.controller.answers.scope import Scope
from quorate.controller.reads.partition_conditions import is_in
from quorate.snapshots.table.pages import PAGE_ROWS
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
    assert Scope.of_broker(cluster.image, 0).tally == every.tally
    assert len(Scope.of_broker(cluster.image, 3)) == ALL // 2
    assert len(Scope.of_broker(cluster.image, 9)) == 0
    assert len(Scope.of_rows(cluster.image, np.array([5, PAGE_ROWS + 1]))) == 2
