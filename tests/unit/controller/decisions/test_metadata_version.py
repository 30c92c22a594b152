"""Which record versions a level of ``metadata.version`` writes: Kafka 4.3.1's ``MetadataVersion``, level by level."""

from __future__ import annotations

import pytest

from quorate.controller.decisions.metadata_version import (
    LEVEL_MAX,
    LEVEL_MIN,
    partition_version,
    register_broker_version,
)


def test_levels_are_those_from_3_3_iv3_to_4_3_iv0() -> None:
    assert (LEVEL_MIN, LEVEL_MAX) == (7, 30)


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_partitions_have_directories_from_3_7_iv2_on_and_an_elr_from_4_0_iv1_on(level: int, version: int) -> None:
    assert partition_version(level) == version


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_brokers_have_directories_from_3_7_iv2_on_and_cordoned_ones_from_4_3_iv0_on(level: int, version: int) -> None:
    assert register_broker_version(level) == version
