"""Prints the table of docs/pipeline.md, "How far from the best": moves of plans, their bounds, and processor time.

python -m tests.capacity_figures             made-up clusters, and random small ones
python -m tests.capacity_figures LOG ID,...  and the end of a log, as it is and with these brokers drained
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from quorate.controller.planning.bounds import fewest_moves
from quorate.controller.planning.cluster import BrokerRole, Brokers, ClusterLayout, TooFewBrokers
from quorate.controller.planning.planner import plan
from quorate.controller.planning.validator import judge
from quorate.pipeline.capacity.state import LAST, readings, state_tables
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.fold.reading import fold_task
from quorate.pipeline.fold.state import state_at
from quorate.pipeline.planning.tables import named_cluster
from tests.random_clusters import random_cluster

_SEEDS = 1500


def made_up(partitions: int, brokers: int, new: int, drained: tuple[int, ...] = (), racks: int = 4) -> ClusterLayout:
    """Three replicas of each partition in different racks, on any of the brokers but the new ones, which are last."""
    chance = np.random.default_rng(1)
    known = Brokers.of({one: f"r{one % racks}" for one in range(brokers)}, dict.fromkeys(drained, BrokerRole.DRAINS))
    start = chance.integers(0, racks, partitions)
    old = (brokers - new) // racks
    columns = [(start + at) % racks + racks * chance.integers(0, old, partitions) for at in range(3)]
    return ClusterLayout(known, np.column_stack(columns).astype(np.int32))


def of_log(log: str, drained: list[int]) -> Iterator[tuple[str, ClusterLayout]]:
    (cluster,) = find_inputs([log])
    tasks = [fold_task(one.task, one.wanted, (LAST,))[0] for one in readings(cluster, None)]
    tables = state_tables(state_at(tasks, LAST))
    yield "the log's end", named_cluster(*tables).cluster
    yield f"the same, {drained} drained", named_cluster(*tables, drained=drained).cluster


def clusters() -> Iterator[tuple[str, ClusterLayout]]:
    yield "100,000 partitions, 40 brokers, 4 new, one drained", made_up(100_000, 40, 4, (7,))
    yield "1,000,000 partitions, 200 brokers, 20 new", made_up(1_000_000, 200, 20)
    if len(sys.argv) > 2:
        yield from of_log(sys.argv[1], [int(one) for one in sys.argv[2].split(",")])


def figures(cluster: ClusterLayout) -> tuple[int, int, float]:
    """Return moves, bound, and processor seconds of plan, judgement and bound together."""
    start = time.process_time()
    found = plan(cluster)
    verdict = judge(found)
    bound = fewest_moves(found)
    assert not verdict.problems
    assert verdict.are_replicas_evenest
    assert verdict.are_leaders_evenest
    return found.moves, bound, time.process_time() - start


def small() -> Iterator[tuple[int, int, float]]:
    for seed in range(_SEEDS):
        try:
            yield figures(random_cluster(seed))
        except TooFewBrokers:
            continue


if __name__ == "__main__":
    for name, cluster in clusters():
        moves, bound, seconds = figures(cluster)
        print(f"{name}: {moves:,} moves for a bound of {bound:,}, {seconds:.1f} s", flush=True)
    found = list(small())
    meet = sum(moves == bound for moves, bound, _ in found)
    moves, bound, seconds = (sum(column) for column in zip(*found, strict=True))
    print(f"{len(found):,} small clusters: {moves:,} moves for {bound:,}; {meet:,} meet the bound; {seconds:.0f} s")
