"""The kernel, rule by rule; tests/golden holds it against what Apache Kafka's ``PartitionChangeBuilder`` answered."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.partitions.rules import RuleSettings
from quorate.scripts.conformance_runner.kinds.partition_cases import PartitionCase, decide_cases

CURRENT = RuleSettings(metadata_version=30, is_elr_enabled=True)
WITHOUT_LAST_LEADER = RuleSettings(metadata_version=30, is_elr_enabled=True, elects_last_known_leader=False)


def partition(**changes: Any) -> PartitionCase:
    values: dict[str, Any] = {
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "leader": 1,
        "directories": ["d1", "d2", "d3"],
        "acceptable": frozenset({1, 2, 3}),
        "min_isr": 2,
    }
    return PartitionCase(**values | changes)


def decide(case: PartitionCase, settings: RuleSettings = CURRENT) -> dict[str, Any]:
    return decide_cases([case], settings)[0]


def test_kernel_nothing_to_do_changes_nothing() -> None:
    assert decide(partition()) == {}


def test_kernel_leader_lost_elects_the_next_replica_in_sync() -> None:
    case = partition(target_isr=[2, 3], acceptable=frozenset({2, 3}))
    assert decide(case) == {"isr": [2, 3], "leader": 2}


def test_kernel_below_min_isr_keeps_who_left_eligible() -> None:
    case = partition(isr=[1, 2], target_isr=[1], acceptable=frozenset({1, 3}))
    assert decide(case) == {"isr": [1], "elr": [2]}


def test_kernel_last_member_lost_remembers_the_leader() -> None:
    case = partition(isr=[1], target_isr=[], elr=[2], acceptable=frozenset({3}))
    assert decide(case) == {"isr": [], "leader": -1, "elr": [1, 2], "last_known_elr": [1]}


def test_kernel_leaderless_written_again_remembers_minus_one() -> None:
    case = partition(isr=[], leader=-1, target_replicas=[1, 2], acceptable=frozenset())
    assert decide(case)["last_known_elr"] == [-1]


def test_kernel_last_known_leader_back_is_elected_uncleanly_unless_that_is_off() -> None:
    case = partition(isr=[], leader=-1, last_known_elr=[2], acceptable=frozenset({2, 3}))
    assert decide(case) == {"isr": [2], "leader": 2, "last_known_elr": [], "leader_recovery_state": "RECOVERING"}
    assert decide(case, WITHOUT_LAST_LEADER) == {}


def test_kernel_without_last_leader_remembers_all_who_were_in_sync_or_eligible() -> None:
    case = partition(isr=[2], leader=2, elr=[3], last_known_elr=[1], target_isr=[], unclean_shutdown=frozenset({2, 3}))
    assert decide(case, WITHOUT_LAST_LEADER) == {"isr": [], "leader": -1, "elr": [], "last_known_elr": [1, 2, 3]}
    case = partition(isr=[2], leader=2, last_known_elr=[1, 3], target_isr=[2, 3])
    assert decide(case, WITHOUT_LAST_LEADER) == {"isr": [2, 3], "last_known_elr": []}


def test_kernel_last_member_lost_without_elr_stays_in_the_isr() -> None:
    case = partition(isr=[1], target_isr=[], acceptable=frozenset({2, 3}))
    assert decide(case, RuleSettings(30, is_elr_enabled=False)) == {"leader": -1}


def test_kernel_unclean_election_starts_recovery() -> None:
    case = partition(isr=[1], target_isr=[], acceptable=frozenset({2, 3}), election="UNCLEAN")
    without_elr = RuleSettings(30, is_elr_enabled=False)
    assert decide(case, without_elr) == {"isr": [2], "leader": 2, "leader_recovery_state": "RECOVERING"}


def test_kernel_all_adding_in_sync_completes_the_reassignment() -> None:
    case = partition(
        replicas=[4, 2, 1], isr=[1, 2], directories=["d4", "d2", "d1"], adding=[4], removing=[1],
        target_isr=[1, 2, 4], acceptable=frozenset({1, 2, 4}),
    )  # fmt: skip
    assert decide(case) == {
        "isr": [2, 4],
        "leader": 4,
        "replicas": [4, 2],
        "adding_replicas": [],
        "removing_replicas": [],
        "directories": ["d4", "d2"],
    }


def test_kernel_shrink_before_level_12_raises_the_leader_epoch() -> None:
    case = partition(target_isr=[1, 2])
    assert decide(case, RuleSettings(11, is_elr_enabled=False)) == {"isr": [1, 2], "leader": 1}
    assert decide(case, RuleSettings(12, is_elr_enabled=False)) == {"isr": [1, 2]}


def test_kernel_replica_without_a_directory_is_refused() -> None:
    with pytest.raises(ValueError, match="no directory"):
        decide(partition(default_directory=None))
    assert decide(partition(default_directory=None), RuleSettings(16, is_elr_enabled=False)) == {}


def test_kernel_preferred_election_among_no_replicas_is_refused() -> None:
    with pytest.raises(ValueError, match="no preferred leader"):
        decide(partition(target_replicas=[], election="PREFERRED"))
