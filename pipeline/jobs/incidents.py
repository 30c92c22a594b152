"""Outages reconstructed from the version tables, and controllers' failovers from the log itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from quorate.metadata_log.errors import QuorateError
from quorate.pipeline.files.inputs import Bearing, InputCluster, find_inputs
from quorate.pipeline.files.ranges import RANGE_BYTES
from quorate.pipeline.files.storage import checked
from quorate.pipeline.incidents.epochs import log_epochs
from quorate.pipeline.incidents.reading import VersionTables
from quorate.pipeline.incidents.search import Search, searched
from quorate.pipeline.incidents.stretch import Told
from quorate.pipeline.incidents.telling.incident_table import NAME, incident_table
from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.pipeline.tables.table_clusters import chosen_cluster
from quorate.pipeline.tables.written import write_part
from quorate.snapshots.incidents.failovers import Epoch
from quorate.snapshots.incidents.telling.incident import Incident
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class IncidentsFound:
    """The incidents, and the search behind them; its tables stand as long as the context that gave it."""

    search: Search
    incidents: list[Incident]
    seconds: float
    #: By cluster, or path where that is not known: why nothing of it is told. Only of several clusters.
    failed: dict[str, str]

    def spent(self) -> tuple[dict[str, float], int]:
        """Processor seconds of the workers by what they did, and the MB of the one that took most."""
        return self.search.use.processor_seconds, self.search.use.mb_max


@contextmanager
def find_incidents(
    spark: SparkSession,
    tables: str | Path,
    logs: Sequence[str],
    thresholds: Thresholds,
    *,
    cluster_id: str | None = None,
    mixed: bool = False,
) -> Iterator[IncidentsFound]:
    """Search the tables of the history job, and the logs that they were made of.

    Args:
        cluster_id: which of the tables' clusters; the logs are of it.
        mixed: all of them, and logs of several; one whose log cannot be read, or is not that of the tables, is left out
            and named, where there is another.

    Raises:
        NoTables: there are none. WhichCluster: of several clusters one must be chosen, or a log's is not in the tables.
        InputError, StorageError, WorkerError: a log that cannot be read. OtherStretch: the tables are not of it.
    """
    started = time.monotonic()
    tables = checked(str(tables))
    versions, there = version_tables(tables, cluster_id=cluster_id, mixed=mixed)
    refused: dict[str, QuorateError] = {}
    clusters = find_inputs(logs, cluster_id=cluster_id, mixed=mixed, refused=refused) if logs else []
    told = Told.by(tables) if clusters else Told(tables, {})
    for one in clusters:
        with Bearing(refused).at(one.cluster_id):
            if there:
                chosen_cluster(tables, there, one.cluster_id)
            told.require_known(one)
    epochs = _epochs(spark, told, [one for one in clusters if one.cluster_id not in refused], refused)
    if refused and (not mixed or refused.keys() >= {one.cluster_id for one in clusters}):
        raise next(iter(refused.values()))
    if refused:
        versions = versions.of_clusters(there - refused.keys())
    with searched(spark, versions, epochs, thresholds) as search:
        failed = {name: str(error) for name, error in sorted(refused.items())}
        found = incidents(search.findings, thresholds)
        yield IncidentsFound(search, found, round(time.monotonic() - started, 2), failed)


def _epochs(
    spark: SparkSession, told: Told, clusters: Sequence[InputCluster], refused: dict[str, QuorateError]
) -> list[Epoch]:
    """The epochs of these clusters, but for those that get refused."""
    epochs, errors = log_epochs(spark, clusters, told.ends(clusters), RANGE_BYTES)
    refused.update(errors)
    for one in clusters:
        if one.cluster_id not in errors:
            with Bearing(refused).at(one.cluster_id):
                told.require(one, epochs)
    return [one for one in epochs if one.cluster_id not in refused]


def version_tables(
    directory: str | Path, *, cluster_id: str | None = None, mixed: bool = False
) -> tuple[VersionTables, set[str]]:
    """The tables in a directory: of the cluster that is asked for, or the only one, or all; and who is in them.

    Raises:
        NoTables: one of them is not there. WhichCluster: it is not there, or there are several.
    """
    tables = VersionTables.of(str(directory))
    there = tables.clusters()
    if cluster_id is not None or (len(there) > 1 and not mixed):
        chosen = chosen_cluster(directory, there, cluster_id, "--cluster, or take all with --mixed")
        tables, there = tables.of_clusters({chosen}), {chosen}
    return tables, there


def write_tables(found: IncidentsFound, out: str | Path) -> None:
    """Write the incidents and the whole tables behind them, as Parquet, all or none.

    Raises:
        StorageError: ``out`` holds something. NotShared: as ``ResultDirectory``.
    """
    with ResultDirectory(out) as directory:
        written = found.search.write(directory.staging)
        table = incident_table(found.incidents)
        written[NAME] = write_part(table, f"{directory.staging}/{NAME}/part-0000.parquet")
        told = {"incidents": len(found.incidents), "tables": sorted(written), "failed": found.failed}
        directory.commit(told, written)
