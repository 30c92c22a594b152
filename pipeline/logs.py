"""Metadata logs as data frames, in anybody's Spark session.

::

    from quorate.pipeline import Logs

    with Logs(spark, "var/up/controller-1") as logs:
        logs.records().where("type = 'TopicRecord'").show()
        logs.history().partitions.where("leader = -1").show()
        logs.state(at=5000).topics.show()
        logs.incidents().where("severity = 'critical'").show()

This module is what programs may rely on: its names stay. What is asked for twice is made once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.uris import local
from quorate.pipeline.history.plan import HistoryOptions
from quorate.pipeline.incidents.telling.incident_table import incident_table
from quorate.pipeline.jobs.history import make_history
from quorate.pipeline.jobs.incidents import find_incidents
from quorate.pipeline.jobs.replay import ReplayOptions, replay
from quorate.pipeline.source.data_source import FORMAT
from quorate.pipeline.source.registering import register
from quorate.snapshots.incidents.thresholds import Thresholds

__all__ = ["History", "Logs", "State", "Thresholds"]


@dataclass(frozen=True, slots=True)
class History:
    """Every version of everything: the tables of ``quorate pipeline history``, whose columns docs/pipeline.md has."""

    partitions: DataFrame
    brokers: DataFrame
    topics: DataFrame
    configs: DataFrame


@dataclass(frozen=True, slots=True)
class State:
    """The state of a cluster at a moment: the tables of ``quorate pipeline replay``.

    Attributes:
        offset: the state is that of all records below it. digest: of the state, as controllers compute it.
    """

    offset: int
    digest: str
    partitions: DataFrame
    brokers: DataFrame
    topics: DataFrame
    configs: DataFrame
    entries: DataFrame


class Logs:
    """The logs of one cluster, or of several.

    What is made of them lies in a temporary directory until ``close``, or the end of a ``with`` block; the data frames
    read from there, so they are of no use afterwards.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: str | Path | Sequence[str | Path],
        *,
        cluster_id: str | None = None,
        mixed: bool = False,
        scratch: str | Path | None = None,
    ) -> None:
        """Make a session ready, as ``source.registering.register`` does: its time zone becomes UTC.

        Args:
            paths: metadata directories, segments, checkpoints, archives: as "Reading logs" in docs/pipeline.md has it.
            cluster_id: of files beside which no ``meta.properties`` tells it. mixed: there may be several clusters.
            scratch: where the temporary directory is made; on a cluster all workers must see it.

        Raises:
            BadSetting: the Python of the session's workers lacks what is needed, or no path is given; ``scratch`` is in
                a store.
        """
        self._spark = spark
        self._paths = [str(paths)] if isinstance(paths, str | Path) else [str(path) for path in paths]
        if not self._paths:
            raise BadSetting("Logs needs a path: a metadata directory, a segment, a checkpoint or an archive")
        self._cluster_id, self._mixed = cluster_id, mixed
        register(spark)
        parent = None if scratch is None else local(str(scratch))
        self._scratch = Path(tempfile.mkdtemp(prefix="quorate-logs-", dir=parent))
        self._history: History | None = None
        self._states: dict[int | datetime | None, State] = {}
        self._incidents: dict[Thresholds, DataFrame] = {}
        self._failed: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was made; once more does no harm."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def failed(self) -> dict[str, str]:
        """Of several clusters those that are not in what was made so far, by cluster or path, and why."""
        return dict(self._failed)

    def records(self, **options: str) -> DataFrame:
        """The records as they were written, one row each.

        Args:
            options: of the source ``quorate-log``, as ``columns="offset,type"``.
        """
        mine = {"mixed": str(self._mixed)} | ({} if self._cluster_id is None else {"clusterId": self._cluster_id})
        return self._spark.read.format(FORMAT).options(**mine, **options).load(self._paths)

    def history(self) -> History:
        """Every version of every partition, broker, topic and config, with when it began and ended.

        Raises:
            StorageError, PipelineError: a log that cannot be read, or does not fit. PySparkException: damage that a
                worker found; the last line of its text has the sentence.
        """
        if self._history is None:
            options = HistoryOptions(cluster_id=self._cluster_id, mixed=self._mixed)
            self._failed |= make_history(self._spark, self._paths, self._tables, options).failed
            names = ("partition_versions", "broker_versions", "topic_versions", "config_versions")
            self._history = History(*(self._read(self._tables / name) for name in names))
        return self._history

    def state(self, at: int | datetime | None = None) -> State:
        """The state of the one cluster at a moment.

        Args:
            at: an offset: all records below it. A time, in UTC where it names no zone: all batches up to it. None: the
                end of the log.

        Raises:
            PipelineError: the log does not hold the moment; else as ``history``. BadSetting: of several clusters.
        """
        if self._mixed:
            raise BadSetting("several clusters have no one state: make Logs of the paths of one")
        if at not in self._states:
            out = self._scratch / f"state-{len(self._states)}"
            offset, time = (None, _milliseconds(at)) if isinstance(at, datetime) else (at, None)
            made = replay(self._spark, self._paths, out, ReplayOptions(offset, time, cluster_id=self._cluster_id))
            names = ("partitions", "brokers", "topics", "configs", "entries")
            self._states[at] = State(made.offset, made.digest, *(self._read(out / name) for name in names))
        return self._states[at]

    def incidents(self, thresholds: Thresholds | None = None) -> DataFrame:
        """The incidents, one row each, the worst first; raises as ``history``.

        Args:
            thresholds: from where on something counts.
        """
        thresholds = thresholds or Thresholds()
        if thresholds not in self._incidents:
            self.history()
            search = find_incidents(
                self._spark, self._tables, self._paths, thresholds, cluster_id=self._cluster_id, mixed=self._mixed
            )
            with search as found:
                self._failed |= found.failed
                self._incidents[thresholds] = self._spark.createDataFrame(incident_table(found.incidents))
        return self._incidents[thresholds]

    @property
    def _tables(self) -> Path:
        return self._scratch / "history"

    def _read(self, table: Path) -> DataFrame:
        return self._spark.read.parquet(table.as_uri())


def _milliseconds(time: datetime) -> int:
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
