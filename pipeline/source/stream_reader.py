"""Reading logs that grow, as Structured Streaming does: steps between places that Spark keeps in its checkpoint.

A step is a pure function of its two places, so that a step that is repeated after a crash has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import task_from_json, task_to_json
from quorate.pipeline.files.tail import UNKNOWN, TailPosition, advance, first_place, readable_end, tasks_between
from quorate.pipeline.files.walk import RecordSelection
from quorate.pipeline.source.batch_reader import read_task
from quorate.pipeline.source.options import SourceOptions
from quorate.pipeline.source.quarantine import make_quarantine
from quorate.pipeline.source.rows import RowPlan

#: By cluster id: a ``TailPosition``. Spark keeps it as JSON.
Offsets = dict[str, dict[str, int]]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader of ``quorate-log``."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._plan = RowPlan(schema, options.types)
        #: By cluster id, what there was when the query was told to read what is there and end.
        self._ends: dict[str, int | None] | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802
        """The position at which a new query begins."""
        return {one.cluster_id: _as_json(first_place(one, self._options.start_offset)) for one in self._clusters()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The option ``maxRecords``."""
        limit = self._options.max_records
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now."""
        self._ends = {one.cluster_id: self._end_now(one) for one in self._clusters()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        """The end of the next step: all clusters share what it may have."""
        clusters = self._clusters()
        end = dict(start)
        # No cluster waits for another one that has more: each has its share, about.
        share = limit.max_rows // len(clusters) if isinstance(limit, ReadMaxRows) else None
        for cluster in clusters:
            place = _from_json(start.get(cluster.cluster_id)) or first_place(cluster, self._options.start_offset)
            bound = self._end(cluster)
            end[cluster.cluster_id] = _as_json(advance(cluster, place, bound, share))
        return end

    def reportLatestOffset(self) -> Offsets:  # noqa: N802
        """The end of all that could be read, for the lag in the query's progress."""
        return {one.cluster_id: _as_json(TailPosition(self._end_now(one))) for one in self._clusters()}

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """One for each task between two places."""
        make_quarantine(self._options.quarantine)
        tasks = []
        for cluster in self._clusters():
            to = _from_json(end.get(cluster.cluster_id))
            if to is not None:
                place = _from_json(start.get(cluster.cluster_id)) or first_place(cluster, self._options.start_offset)
                tasks += tasks_between(cluster, place, to, self._options.range_bytes)
        return [InputPartition(task_to_json(task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if partition.value is None:  # Spark's stand-in where there is no task
            return
        wanted = RecordSelection(self._options.start_offset or 0)
        yield from read_task(task_from_json(partition.value), self._plan, wanted, self._options.quarantine)

    def _clusters(self) -> list[InputCluster]:
        options = self._options
        return find_inputs(options.paths, cluster_id=options.cluster_id, mixed=options.mixed)

    def _end(self, cluster: InputCluster) -> int | None:
        if self._ends is not None and cluster.cluster_id in self._ends:
            return self._ends[cluster.cluster_id]
        return readable_end(cluster, uncommitted=self._options.uncommitted)

    def _end_now(self, cluster: InputCluster) -> int:
        end = readable_end(cluster, uncommitted=self._options.uncommitted)
        if end is not None:
            return end
        last = cluster.segments[-1].offset if cluster.segments else 0
        return advance(cluster, TailPosition(last), None).offset


def _as_json(place: TailPosition) -> dict[str, int]:
    return asdict(place)


def _from_json(data: dict[str, Any] | None) -> TailPosition | None:
    if data is None:
        return None
    return TailPosition(
        data["offset"],
        data.get("segment", UNKNOWN),
        data.get("position", 0),
        data.get("last_position", UNKNOWN),
        data.get("last_epoch", UNKNOWN),
    )
