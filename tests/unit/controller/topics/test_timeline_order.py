"""Which partition stands for its topic where Kafka takes any."""

from __future__ import annotations

import pytest

from quorate.controller.topics.timeline_order import first_listed_partition


@pytest.mark.parametrize(
    ("count", "first"),
    [
        (1, 0),
        (2, 0),
        (3, 2),
        (4, 2),
        (5, 0),
        (6, 5),
        (7, 5),
        (9, 5),
        (10, 0),
        (11, 0),
        (20, 13),
        (21, 0),
        (22, 0),
        (42, 34),
        (43, 34),
        (85, 0),
        (100, 89),
        (341, 233),
        (342, 233),
        (1000, 610),
    ],
)
def test_first_listed_partition_some_counts_is_kafkas(count: int, first: int) -> None:
    assert first_listed_partition(count) == first
