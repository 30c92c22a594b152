"""Audits of several clusters, one after the other in one session; one that cannot be done does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import QuorateError
from quorate.pipeline.errors import WorkerError
from quorate.pipeline.failures import translated
from quorate.pipeline.files.inputs import Bearing, InputCluster, find_inputs
from quorate.pipeline.files.storage import checked
from quorate.pipeline.jobs.audit import AuditOptions, AuditResult, audit_cluster


@dataclass(frozen=True, slots=True)
class FleetAudit:
    """The results of the audits."""

    #: By cluster id.
    results: list[AuditResult]
    #: By cluster, or path where that is not known: why there is no audit of it.
    failed: dict[str, str]

    @property
    def passed(self) -> bool:
        return not self.failed and all(one.passed for one in self.results)


def audit_all(spark: SparkSession, paths: Sequence[str], options: AuditOptions) -> FleetAudit:
    """Audit each cluster whose files the paths hold, as ``audit.audit`` does it.

    Args:
        options: without an offset and digests, which are of one log.

    Raises:
        QuorateError: no cluster can be audited; the first reason why.
    """
    refused: dict[str, QuorateError] = {}
    clusters = find_inputs(paths, cluster_id=options.cluster_id, mixed=True, refused=refused)
    results = []
    for cluster in clusters:
        with Bearing(refused).at(cluster.cluster_id):
            results.append(_audited(spark, cluster, _paths_of(cluster, paths), options))
    if refused and not results:
        raise next(iter(refused.values()))
    return FleetAudit(results, {name: str(error) for name, error in sorted(refused.items())})


def _audited(spark: SparkSession, cluster: InputCluster, paths: Sequence[str], options: AuditOptions) -> AuditResult:
    try:
        return audit_cluster(spark, cluster, paths, options)
    except PySparkException as error:
        found = translated(error)
        if not isinstance(found, WorkerError):
            raise
        raise found from error


def _paths_of(cluster: InputCluster, paths: Sequence[str]) -> list[str]:
    """Those of the paths that files of a cluster come from."""
    files = [file.place.path for file in (*cluster.segments, *cluster.checkpoints)]
    return [path for path in paths if any(_is_in(file, checked(path)) for file in files)]


def _is_in(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path.rstrip('/')}/")
