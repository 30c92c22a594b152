"""Two clusters, or two moments of one, beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.comparing.differences import differences
from pipeline.comparing.kinds import KINDS
from pipeline.comparing.report import Differences, Side
from pipeline.comparing.sides import Moment, state_of


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared, and what differs."""

    a: Side
    b: Side
    match_ids: bool
    kinds: list[Differences]

    @property
    def is_equal(self) -> bool:
        """Nothing differs of what was compared."""
        return all(kind.is_equal for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class Asked:
    """One side as it was asked for."""

    path: Path
    moment: Moment
    #: Which of those in the tables; None where there is one.
    cluster_id: str | None = None


def compare(spark: SparkSession, a: Asked, b: Asked, *, match_ids: bool, limit: int) -> Comparison:
    """Compare two states.

    Args:
        match_ids: topics are the same where their ids are, not where their names are.
        limit: so many differing rows of each kind are told one by one.

    Raises:
        NoState: a side that has none. WhichCluster: a side of several clusters, or not of the one asked for.
    """
    left, right = (
        state_of(spark, side.path, side.moment, side.cluster_id, option)
        for side, option in ((a, "--cluster-a"), (b, "--cluster-b"))
    )
    same_cluster = left.cluster_id == right.cluster_id
    found = [
        differences(
            kind, left.tables[kind.name], right.tables[kind.name], match_ids=match_ids, same_cluster=same_cluster,
            limit=limit,
        )
        for kind in KINDS
    ]  # fmt: skip
    a_side, b_side = (Side(state.path, state.cluster_id, state.moment) for state in (left, right))
    return Comparison(a_side, b_side, match_ids, found)
