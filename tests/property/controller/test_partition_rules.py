"""The kernel against a row-at-a-time model, on any partition that a controller could meet and on some it could not."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.partitions import rules as partition_rules
from quorate.controller.partitions.rules import RuleSettings
from quorate.scripts.conformance_runner.kinds.partition_cases import PartitionCase, decide_cases
from tests.property.naive_partition_rules import naive_change

BROKERS = range(8)


def some_of(brokers: list[int]) -> st.SearchStrategy[list[int]]:
    """Any of the brokers, each at most once, in any order."""
    return st.lists(st.sampled_from(brokers), unique=True) if brokers else st.just([])


@st.composite
def partition_cases(draw: st.DrawFn) -> PartitionCase:
    """A partition and one change that is asked of it."""
    replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=6, unique=True))
    isr = draw(some_of(replicas))
    target_replicas = draw(st.none() | st.lists(st.sampled_from(BROKERS), min_size=1, max_size=6, unique=True))
    now_replicas = target_replicas or replicas
    leader = draw(st.sampled_from([-1, *replicas]))
    names = [draw(st.sampled_from([f"d{broker}.0", "UNASSIGNED", "LOST"])) for broker in replicas]
    return PartitionCase(
        replicas=replicas,
        isr=isr,
        leader=leader,
        directories=names,
        adding=draw(some_of(replicas)),
        removing=draw(some_of(replicas)),
        elr=sorted(draw(some_of([broker for broker in replicas if broker not in isr]))),
        last_known_elr=draw(st.sampled_from([[], [], [-1], [replicas[0]], [replicas[-1]], sorted(replicas)])),
        is_recovering=draw(st.booleans()),
        acceptable=frozenset(draw(some_of(list(BROKERS)))),
        election=draw(st.sampled_from([None, "ONLINE", "PREFERRED", "UNCLEAN"])),
        min_isr=draw(st.integers(1, 3)),
        target_isr=draw(st.none() | some_of(now_replicas)),
        target_replicas=target_replicas,
        target_removing=draw(st.none() | some_of(now_replicas)),
        target_adding=draw(st.none() | some_of(now_replicas)),
        target_is_recovering=draw(st.none() | st.booleans()),
        unclean_shutdown=frozenset(draw(some_of(replicas))),
        set_directories=draw(st.dictionaries(st.sampled_from(replicas), st.just("dx"), max_size=2)),
    )


RULE_SETTINGS = st.one_of(
    st.builds(RuleSettings, st.integers(7, 22), st.just(False), st.booleans()),
    st.builds(RuleSettings, st.integers(23, 30), st.booleans(), st.booleans()),
)


@given(st.lists(partition_cases(), min_size=1, max_size=8), RULE_SETTINGS)
@settings(max_examples=150, deadline=None)
def test_kernel_any_partitions_changes_as_the_naive_model(cases: list[PartitionCase], rules: RuleSettings) -> None:
    assert decide_cases(cases, rules) == [naive_change(case, rules) for case in cases]


@given(st.lists(partition_cases(), min_size=2, max_size=8), RULE_SETTINGS)
@settings(max_examples=30, deadline=None)
def test_kernel_many_rows_decides_each_as_if_alone(cases: list[PartitionCase], rules: RuleSettings) -> None:
    alone = [decide_cases([case], rules)[0] for case in cases]
    assert decide_cases(cases, rules) == alone


@given(st.lists(partition_cases(), min_size=2, max_size=8), RULE_SETTINGS)
@settings(max_examples=30, deadline=None)
def test_kernel_cut_into_blocks_decides_the_same(cases: list[PartitionCase], rules: RuleSettings) -> None:
    whole = decide_cases(cases, rules)
    assert _in_blocks_of(2, cases, rules) == whole


def _in_blocks_of(rows: int, cases: list[PartitionCase], rules: RuleSettings) -> list[dict[str, Any]]:
    usual = partition_rules.BLOCK_ROWS
    try:
        partition_rules.BLOCK_ROWS = rows  # type: ignore[misc] # smaller blocks, so that few rows fill several
        return decide_cases(cases, rules)
    finally:
        partition_rules.BLOCK_ROWS = usual  # type: ignore[misc]
