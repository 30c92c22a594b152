"""``moves``: plans of where replicas go, for a large cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from quorate.controller.planning.cluster import BrokerRole, Brokers, ClusterLayout, ReassignmentPlan
from quorate.controller.planning.draining import plan_drain
from quorate.controller.planning.planner import plan
from quorate.controller.planning.widths import plan_widths
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.workspace import Workspace

_PARTITIONS: Final = 1_000_000
_RACKS: Final = 3
#: Brokers, the last of which are new, and hold nothing: one in each rack.
_BROKERS: Final = 60
_REPLICAS: Final = 3
#: Somebody waits for the plan, and has to read it.
_PLAN_S: Final = FigureTarget(10.0)


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Each plan once a run."""
    count = workspace.scaled(_PARTITIONS, 1_000)
    one_drained = _cluster(count, drained=1)
    as_it_is = _cluster(count)
    plans: dict[str, Callable[[], ReassignmentPlan]] = {
        "drain of one broker": partial(plan_drain, one_drained),
        "a replica more for all": partial(plan_widths, as_it_is, _REPLICAS + 1),
        "a replica less for all": partial(plan_widths, as_it_is, _REPLICAS - 1),
        "balance after three brokers came": partial(plan, as_it_is),
    }
    taken: dict[str, list[float]] = {name: [] for name in plans}
    for _ in range(workspace.runs):
        for name, make in plans.items():
            taken[name].append(_cpu_s(make))
    return BenchmarkOutcome(
        f"one process, no HTTP; {count:,} partitions of {_REPLICAS} replicas on {_BROKERS} brokers in {_RACKS} racks; "
        "processor time from the arrays to the plan",
        tuple(Figure(name, "s", tuple(samples), (_PLAN_S,)) for name, samples in taken.items()),
    )


def _cluster(count: int, drained: int | None = None) -> ClusterLayout:
    """Each partition in all racks, on brokers that a generator with a seed draws."""
    draw = np.random.default_rng(1)
    roles = {} if drained is None else {drained: BrokerRole.DRAINS}
    brokers = Brokers.of({one: f"rack-{one % _RACKS}" for one in range(_BROKERS)}, roles)
    first = draw.integers(0, _RACKS, count)
    old = _BROKERS // _RACKS - 1
    columns = [(first + at) % _RACKS + _RACKS * draw.integers(0, old, count) for at in range(_REPLICAS)]
    return ClusterLayout(brokers, np.column_stack(columns).astype(np.int32))


def _cpu_s(make: Callable[[], ReassignmentPlan]) -> float:
    start = time.process_time()
    make()
    return time.process_time() - start
