"""Following logs into a table, exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from quorate.pipeline.source.data_source import FORMAT
from quorate.pipeline.tables.stream_table import StreamTable

#: Records of a step: some seconds of work, and what a restart may have to do again.
STEP_RECORDS: Final = 1_000_000
_LOOK_S: Final = 0.5

#: Spark gives a Python process ten seconds to start, which on a busy machine may be too few.
_SLOW_START: Final = "Python worker failed to connect back"
_STARTS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class StreamStep:
    """One step of the stream, done."""

    number: int
    records: int
    seconds: float
    #: By cluster id: where the table ends now (exclusive), and where the log did.
    ends: Mapping[str, int]
    latest: Mapping[str, int]

    @property
    def lag(self) -> int:
        """Records that could be read and are not in the table yet."""
        return sum(max(0, offset - self.ends.get(cluster, 0)) for cluster, offset in self.latest.items())


def follow(
    spark: SparkSession,
    paths: Sequence[str],
    out: Path,
    *,
    every_s: float | None,
    options: Mapping[str, str],
    tell: Callable[[StreamStep], None],
) -> StreamTable:
    """Put the records of the logs into the table ``out``, from where it ends.

    Args:
        every_s: seconds from one look at the logs to the next; None = what is there now, and no more.
        options: of the source. tell: is called after each step.

    Raises:
        WorkerError: a log is damaged, was truncated or cut by retention; the table holds all before.
    """
    table = StreamTable(out)
    table.path.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.format(FORMAT).options(maxRecords=str(STEP_RECORDS)).options(**options)
    # Spark's own load() of a stream takes one path only.
    rows = reader.option("paths", json.dumps([str(path) for path in paths])).load()

    def add(step: DataFrame, number: int) -> None:
        table.add(step, number)

    writer = rows.writeStream.foreachBatch(add).option("checkpointLocation", table.checkpoint.resolve().as_uri())
    trigger: dict[str, Any] = {"availableNow": True} if every_s is None else {"processingTime": f"{every_s} seconds"}
    _run(writer.trigger(**trigger), tell)
    return table


def _run(writer: DataStreamWriter, tell: Callable[[StreamStep], None]) -> None:
    """Run the query to its end. It may be started again at any time: what was done is in the table."""
    told, starts = -1, 0
    while True:
        query = writer.start()
        starts += 1
        try:
            is_over = False
            while not is_over:
                is_over = query.awaitTermination(_LOOK_S)
                for progress in query.recentProgress:
                    if progress["batchId"] > told and progress["numInputRows"]:
                        told, starts = progress["batchId"], 1
                        tell(_step(progress))
            return
        except StreamingQueryException as error:
            if _SLOW_START not in str(error) or starts == _STARTS_MAX:
                raise
        finally:
            query.stop()


def _step(progress: Mapping[str, Any]) -> StreamStep:
    (source,) = progress["sources"]
    return StreamStep(
        progress["batchId"],
        progress["numInputRows"],
        progress["durationMs"].get("triggerExecution", 0) / 1000,
        _ends(source.get("endOffset")),
        _ends(source.get("latestOffset")),
    )


def _ends(offsets: Any) -> dict[str, int]:
    """Spark gives them as JSON, or as what that says."""
    found = json.loads(offsets) if isinstance(offsets, str) else offsets
    return {cluster: place["offset"] for cluster, place in (found or {}).items()}
