"""Outages reconstructed from the version tables, and controllers' failovers from the log itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipeline.errors import PipelineError
from pipeline.incidents.epochs import log_epochs
from pipeline.incidents.incident import Incident
from pipeline.incidents.search import Search, VersionTables, searched
from pipeline.incidents.story import incidents
from pipeline.incidents.thresholds import Thresholds
from pipeline.inputs import find_inputs
from pipeline.ranges import RANGE_BYTES
from pipeline.result_directory import ResultDirectory
from pipeline.table_clusters import chosen_cluster

_TABLES = ("partition_versions", "broker_versions", "config_versions")


class NoTables(PipelineError):
    """A directory that does not hold the tables of the history job."""


@dataclass(frozen=True, slots=True)
class IncidentsFound:
    """The incidents, and the search behind them; its tables stand as long as the context that gave it."""

    search: Search
    incidents: list[Incident]


@contextmanager
def find_incidents(
    spark: SparkSession,
    tables: Path,
    logs: Sequence[Path],
    thresholds: Thresholds,
    *,
    cluster_id: str | None = None,
    mixed: bool = False,
) -> Iterator[IncidentsFound]:
    """Search the tables of the history job, and the logs that they were made of.

    Args:
        cluster_id: which of the tables' clusters; the logs are of it. mixed: all of them, and logs of several.

    Raises:
        NoTables: there are none. WhichCluster: of several clusters one must be chosen, or a log's is not in the tables.
        InputError, StorageError: a log that cannot be read.
    """
    versions, there = version_tables(spark, tables, cluster_id=cluster_id, mixed=mixed)
    clusters = find_inputs([str(path) for path in logs], cluster_id=cluster_id, mixed=mixed) if logs else []
    for one in clusters:
        if there and one.cluster_id not in there:
            chosen_cluster(tables, there, one.cluster_id)
    epochs = log_epochs(spark, clusters, RANGE_BYTES)
    with searched(spark, versions, epochs, thresholds) as search:
        yield IncidentsFound(search, incidents(search.findings, thresholds))


def version_tables(
    spark: SparkSession, directory: Path, *, cluster_id: str | None = None, mixed: bool = False
) -> tuple[VersionTables, set[str]]:
    """The tables in a directory: of the cluster that is asked for, or the only one, or all; and who is in them.

    Raises:
        NoTables: one of them is not there. WhichCluster: it is not there, or there are several.
    """
    missing = [name for name in _TABLES if not (directory / name).is_dir()]
    if missing:
        raise NoTables(f"{directory}: holds no {missing[0]}; make the tables with: quorate pipeline history")
    tables = [spark.read.parquet(str(directory / name)) for name in _TABLES]
    ids = [table.select("cluster_id") for table in tables]
    there = {row.cluster_id for row in reduce(DataFrame.union, ids).distinct().collect()}
    if cluster_id is not None or (len(there) > 1 and not mixed):
        chosen = chosen_cluster(directory, there, cluster_id, "--cluster, or take all with --mixed")
        tables, there = [table.where(sf.col("cluster_id") == chosen) for table in tables], {chosen}
    return VersionTables(*tables), there


def write_tables(found: IncidentsFound, out: Path) -> None:
    """Write the whole tables behind the findings, as Parquet, all or none.

    Raises:
        StorageError: ``out`` holds something.
    """
    with ResultDirectory(out) as directory:
        for name, table in found.search.tables.items():
            table.write.parquet(str(directory.staging / name))
        directory.commit({"incidents": len(found.incidents), "tables": sorted(found.search.tables)})
