"""Two clusters, or two moments of one, beside each other."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from quorate.metadata_log.records.hidden_values import IsSecret, no_secrets
from quorate.pipeline.comparing.differences import differences
from quorate.pipeline.comparing.entries import ENTRY_KINDS, entry_differences
from quorate.pipeline.comparing.report import Differences, Side
from quorate.pipeline.comparing.secrets import Secrets
from quorate.pipeline.jobs.compared_sides import ComparedSide, RequestedSide, state_of
from quorate.pipeline.spark.scratch import scratch_directory


@dataclass(frozen=True, slots=True)
class StateComparison:
    """The two sides that were compared, and their differences."""

    a: Side
    b: Side
    match_ids: bool
    kinds: list[Differences]
    #: Kinds that one of the sides does not hold.
    not_compared: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Nothing differs of what was compared."""
        return all(kind.is_equal for kind in self.kinds)


def compare(
    spark: SparkSession,
    a: RequestedSide,
    b: RequestedSide,
    *,
    match_ids: bool,
    limit: int,
    is_secret: IsSecret = no_secrets,
) -> StateComparison:
    """Compare two states. Of a secret it is told that it is another one, unless a side's tables hide them.

    Args:
        is_secret: which configs may be.
        match_ids: topics are the same where their ids are, not where their names are.
        limit: so many differing rows of each kind are told one by one.

    Raises:
        NoState, WhichCluster, StorageError, PipelineError: a side that has none, as ``state_of``.
    """
    with scratch_directory() as scratch:
        left = state_of(spark, a, scratch / "a", "--cluster-a")
        right = state_of(spark, b, scratch / "b", "--cluster-b")
        return _compared(spark, left, right, match_ids=match_ids, limit=limit, is_secret=is_secret)


def _compared(
    spark: SparkSession,
    left: ComparedSide,
    right: ComparedSide,
    *,
    match_ids: bool,
    limit: int,
    is_secret: IsSecret,
) -> StateComparison:
    same_cluster = left.cluster_id == right.cluster_id
    # What one side does not hold is no difference.
    hidden = left.hides_secrets or right.hides_secrets
    secrets = Secrets(is_secret, are_compared=not hidden)
    found = differences(
        spark, left.tables, right.tables, match_ids=match_ids, same_cluster=same_cluster, limit=limit, secrets=secrets
    )
    not_compared: tuple[str, ...] = ()
    if left.entries is None or right.entries is None:
        not_compared = tuple(kind.name for kind in ENTRY_KINDS)
    else:
        own = same_cluster or match_ids
        found += [
            entry_differences(kind, left.entries, right.entries, own=own, limit=limit, hidden=hidden)
            for kind in ENTRY_KINDS
        ]
    a_side, b_side = (Side(state.path, state.cluster_id, state.moment) for state in (left, right))
    return StateComparison(a_side, b_side, match_ids, found, not_compared)
