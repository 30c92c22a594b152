"""The outcomes of drills, gathered from the directories in which reports were kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from quorate.pipeline.drills.report import DrillRun, DrillSeries
from quorate.pipeline.errors import PipelineError

#: As `quorate drill run --report` writes them; what a comparison does not need is left out.
_OUTCOME: Final = (
    "version int, drill string, verdict string, begun_at_ms bigint,"
    " measured array<struct<expectation: struct<name: string, meaning: string, at_most: double>, value: double>>"
)
_VERSION: Final = 1
_VERDICTS: Final = ("passed", "failed", "broken", "skipped")
#: The last so many runs of a drill: a page of more points tells no more.
RUNS_MAX: Final = 1_000


class NoOutcome(PipelineError):
    """A directory without outcomes, or a file that is none."""


def gather(spark: SparkSession, directories: Sequence[Path]) -> list[DrillSeries]:
    """Every measurement of every drill, by drill and in the order in which it is measured.

    Raises:
        NoOutcome: a directory holds no JSON file, or one that is no outcome of a drill; it is named.
    """
    for directory in directories:
        if not any(directory.rglob("*.json")):
            raise NoOutcome(
                f"{directory}: holds no outcome (*.json); keep them with: quorate drill run NAME --report DIR"
            )
    frame = (
        spark.read.schema(_OUTCOME)
        .option("multiLine", value=True)
        .option("recursiveFileLookup", value=True)
        .option("pathGlobFilter", "*.json")
        .json([str(directory) for directory in directories])
        .withColumn("file", sf.col("_metadata.file_path"))
    )
    is_none = (sf.coalesce("version", sf.lit(0)) != _VERSION) | sf.col("drill").isNull()
    is_none |= sf.col("begun_at_ms").isNull() | sf.col("measured").isNull()
    is_none |= ~sf.coalesce("verdict", sf.lit("")).isin(*_VERDICTS)
    try:
        rows = frame.select("*", is_none.alias("is_none")).toArrow().to_pylist()
    except PySparkException as error:
        raise NoOutcome(f"the outcomes cannot be read: {str(error).splitlines()[0]}") from error
    for row in rows:
        if row["is_none"]:
            raise NoOutcome(f"{row['file'].removeprefix('file:')}: no outcome of a drill; take it away")
    return _series(rows)


def _series(rows: list[dict[str, Any]]) -> list[DrillSeries]:
    runs: dict[tuple[str, str], list[DrillRun]] = {}
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["drill"], row["begun_at_ms"])):
        for one in row["measured"]:
            key = (row["drill"], one["expectation"]["name"])
            runs.setdefault(key, []).append(DrillRun(row["begun_at_ms"], row["verdict"], one["value"]))
            last[key] = one["expectation"]
    return [
        DrillSeries(drill, name, last[drill, name]["meaning"], last[drill, name]["at_most"], tuple(found[-RUNS_MAX:]))
        for (drill, name), found in runs.items()
    ]
