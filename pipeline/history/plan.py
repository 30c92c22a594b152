"""What a history reads, and into which buckets of topics it is shared out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metadata_log.errors import QuorateError
from metadata_log.records import SnapshotHeaderRecord
from pipeline.inputs import InputCluster, InputError, InputFile
from pipeline.ranges import RANGE_BYTES, Task, plan_checkpoint, plan_log, task_to_json
from pipeline.replay_bases import replay_base
from pipeline.table_format import TableFormat
from pipeline.walk import read_range

#: Bytes of log in a bucket: some million records, whose versions take a worker a few hundred MB.
BUCKET_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """How a history is made.

    Attributes:
        end_offset: only records below it; None = all. cluster_id: of files that do not tell. mixed: there may be
        several clusters. table_format: of the tables. range_bytes: of log in a task. bucket_bytes: of log in a bucket;
        what a worker holds at once follows from it.
    """

    end_offset: int | None = None
    cluster_id: str | None = None
    mixed: bool = False
    table_format: TableFormat = TableFormat.PARQUET
    range_bytes: int = RANGE_BYTES
    bucket_bytes: int = BUCKET_BYTES


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What is read of one cluster, and into which buckets."""

    cluster_id: str
    buckets: range
    first_offset: int
    #: Of the checkpoint that the history begins with: the last offset that it covers, and that record's time.
    base: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """What is read, and how it is shared out. Travels to the workers."""

    clusters: list[ClusterPlan]
    #: By bucket the number of its cluster.
    cluster_of_bucket: list[int]
    #: The number of a task's cluster, and the task as JSON; those of a cluster's checkpoint come first.
    tasks: list[tuple[int, str]]
    #: None = all there is.
    end_offset: int | None

    @classmethod
    def of(
        cls, clusters: Sequence[InputCluster], options: HistoryOptions, refused: dict[str, QuorateError]
    ) -> HistoryPlan:
        """The plan for these clusters.

        Args:
            refused: gets those, by id, of which nothing can be made, and why; if there may be only one, it is raised.

        Raises:
            QuorateError: of the one cluster that there may be.
        """
        plan = cls([], [], [], options.end_offset)
        for cluster in clusters:
            try:
                plan._add(cluster, options)
            except QuorateError as error:
                if not options.mixed:
                    raise
                refused[cluster.cluster_id] = error
        return plan

    def _add(self, cluster: InputCluster, options: HistoryOptions) -> None:
        checkpoint = _first_checkpoint(cluster, options.end_offset)
        first = 0 if checkpoint is None else checkpoint.offset
        log = plan_log(cluster, first_offset=first, end_offset=options.end_offset, range_bytes=options.range_bytes)
        held = [] if checkpoint is None else plan_checkpoint(cluster, checkpoint, range_bytes=options.range_bytes)
        base = None if checkpoint is None else (first - 1, _time_of(held[0]))
        size = sum(file.size for file in cluster.segments)
        if not size and checkpoint is None:
            raise InputError(
                cluster.segments[0].name, "is empty, and there is no checkpoint", "give a log with records"
            )
        number, before, count = (
            len(self.clusters),
            len(self.cluster_of_bucket),
            max(1, -(-size // options.bucket_bytes)),
        )
        self.clusters.append(ClusterPlan(cluster.cluster_id, range(before, before + count), first, base))
        self.cluster_of_bucket.extend([number] * count)
        self.tasks.extend((number, task_to_json(task)) for task in (*held, *log))


def _first_checkpoint(cluster: InputCluster, end_offset: int | None) -> InputFile | None:
    """The oldest checkpoint whose tail is there, None where the log begins at offset 0.

    Raises:
        InputError: there is neither, or nothing below the end that was asked for.
    """
    first = cluster.first_offset
    if first == 0:
        return None
    for file in cluster.checkpoints:
        if first is not None and file.offset >= first and (end_offset is None or file.offset <= end_offset):
            return file
    return replay_base(cluster, end_offset).checkpoint


def _time_of(task: Task) -> int:
    """The time of the last record that a checkpoint covers, milliseconds since 1970."""
    for chunk in read_range(task.ranges[0], chunk_bytes=4096):
        for _, record, _ in chunk.records():
            if isinstance(record, SnapshotHeaderRecord):
                return record.last_contained_log_timestamp
    return 0
