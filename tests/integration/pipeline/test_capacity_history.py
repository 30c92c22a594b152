"""Plans for what months of a cluster's life have left: a generated history, folded and planned for, without Spark."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pytest

from quorate.controller.planning.bounds import fewest_moves
from quorate.controller.planning.cluster import BrokerRole, ReassignmentPlan
from quorate.controller.planning.planner import plan
from quorate.pipeline.capacity.state import LAST, readings, state_tables
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.fold.reading import fold_task
from quorate.pipeline.fold.state import state_at
from quorate.pipeline.planning.summary import planned
from quorate.pipeline.planning.tables import named_cluster
from quorate.scripts.generated_history.making import GenerationPlan, make_history

#: What eighty thousand partitions on sixty brokers are made from, at a fiftieth: brokers crash, lose disks, are
#: replaced; reassignments bring replicas into racks that have one already.
_HISTORY = GenerationPlan(records=100_000, seed=2)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    """The partitions and brokers at the end of the history."""
    log = tmp_path_factory.mktemp("history") / "log"
    make_history(_HISTORY, log, lambda _: None)
    (cluster,) = find_inputs([str(log)])
    tasks = [fold_task(one.task, one.wanted, (LAST,))[0] for one in readings(cluster, None)]
    return state_tables(state_at(tasks, LAST))


@pytest.mark.parametrize(
    ("drained", "excluded"), [((), ()), ((2,), ()), ((2,), (3, 4)), ((2,), (5, 8, 11))], ids=lambda ids: str(ids)
)
def test_plan_for_a_lived_in_cluster_needs_no_move_more_than_the_bound(
    tables: tuple[pa.Table, pa.Table], drained: Collection[int], excluded: Collection[int]
) -> None:
    """A fifth of the partitions break the rack rule; brokers hold from few replicas to many. All that is put right."""
    named = named_cluster(*tables, drained=drained, excluded=excluded)
    found, summary = planned(named)
    brokers = named.cluster.brokers

    assert summary.partitions > 2000
    assert summary.rack_rule_broken_before > 500
    assert summary.verdict.replicas_before.highest > 2 * summary.verdict.replicas_before.lowest
    # Twice judged: by the validator, and row by row here.
    assert summary.verdict.problems == ()
    racks = brokers.racks[brokers.roles != BrokerRole.DRAINS]
    for row in found.after.tolist():
        held = [one for one in row if one >= 0]
        assert len({int(brokers.racks[one]) for one in held}) == min(len(held), len(np.unique(racks)))
        assert not any(brokers.roles[one] == BrokerRole.DRAINS for one in held)
    assert summary.verdict.replicas.is_even
    assert summary.verdict.leaders.is_even
    assert summary.moves == summary.fewest_moves


def test_bound_counts_what_rack_and_balance_want_of_the_same_replicas_once(tables: tuple[pa.Table, pa.Table]) -> None:
    """A plan for the plan's end needs nothing; halfway there, it needs what is left."""
    cluster = named_cluster(*tables, drained=[2]).cluster
    found = plan(cluster)
    halfway = cluster.replicas.copy()
    halfway[::2] = found.after[::2]
    rest = plan(type(cluster)(cluster.brokers, halfway))

    assert fewest_moves(ReassignmentPlan(type(cluster)(cluster.brokers, found.after), found.after)) == 0
    left = ReassignmentPlan(type(cluster)(cluster.brokers, halfway), found.after).moves
    assert rest.moves == fewest_moves(rest) <= left < found.moves
