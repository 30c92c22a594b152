"""Outages reconstructed from the version tables, and controllers' failovers from the log itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.incidents.epochs import log_epochs
from pipeline.incidents.incident import Incident
from pipeline.incidents.search import Search, VersionTables, searched
from pipeline.incidents.story import incidents
from pipeline.incidents.thresholds import Thresholds
from pipeline.inputs import find_inputs
from pipeline.ranges import RANGE_BYTES
from pipeline.result_directory import ResultDirectory

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
    spark: SparkSession, tables: Path, logs: Sequence[Path], thresholds: Thresholds, *, mixed: bool = False
) -> Iterator[IncidentsFound]:
    """Search the tables of the history job, and the logs that they were made of.

    Raises:
        NoTables: there are none. InputError, StorageError: a log that cannot be read.
    """
    versions = version_tables(spark, tables)
    clusters = find_inputs([str(path) for path in logs], mixed=mixed) if logs else []
    epochs = log_epochs(spark, clusters, RANGE_BYTES)
    with searched(spark, versions, epochs, thresholds) as search:
        yield IncidentsFound(search, incidents(search.findings, thresholds))


def version_tables(spark: SparkSession, directory: Path) -> VersionTables:
    """The tables in a directory.

    Raises:
        NoTables: one of them is not there.
    """
    missing = [name for name in _TABLES if not (directory / name).is_dir()]
    if missing:
        raise NoTables(f"{directory}: holds no {missing[0]}; make the tables with: quorate pipeline history")
    return VersionTables(*(spark.read.parquet(str(directory / name)) for name in _TABLES))


def write_tables(found: IncidentsFound, out: Path) -> None:
    """Write the whole tables behind the findings, as Parquet, all or none.

    Raises:
        StorageError: ``out`` holds something.
    """
    with ResultDirectory(out) as directory:
        for name, table in found.search.tables.items():
            table.write.parquet(str(directory.staging / name))
        directory.commit({"incidents": len(found.incidents), "tables": sorted(found.search.tables)})
