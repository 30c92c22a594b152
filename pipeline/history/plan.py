"""The plan of a history: what it reads, and the buckets of topics that share the work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.hidden_values import IsSecret, no_secrets
from quorate.metadata_log.records.records import SnapshotHeaderRecord
from quorate.pipeline.files.inputs import InputCluster, InputError, InputFile
from quorate.pipeline.files.ranges import RANGE_BYTES, Task, all_ranges, plan_checkpoint, plan_log, task_to_json
from quorate.pipeline.files.replay_bases import replay_base
from quorate.pipeline.files.walk import read_range
from quorate.pipeline.history.held import held_tasks
from quorate.pipeline.history.resuming import ClusterRead, require_goes_on
from quorate.pipeline.tables.table_format import TableFormat

#: Bytes of log in a bucket: some million records, whose versions take a worker a few hundred MB.
BUCKET_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """The options of a history.

    Attributes:
        end_offset: only records below it; None = all. cluster_id: of files that do not tell. mixed: there may be
        several clusters. table_format: of the tables. append: what is there is gone on with; of a node's own log only
        what is committed is read, as the rest may be another one the next time. range_bytes: of log in a task.
        bucket_bytes: of log in a bucket; what a worker holds at once follows from it.
        is_secret: which configs are hidden in the tables.
    """

    end_offset: int | None = None
    cluster_id: str | None = None
    mixed: bool = False
    table_format: TableFormat = TableFormat.PARQUET
    append: bool = False
    range_bytes: int = RANGE_BYTES
    bucket_bytes: int = BUCKET_BYTES
    is_secret: IsSecret = no_secrets


class HeldTables(Protocol):
    """Tables that hold a history already."""

    @property
    def held(self) -> dict[str, ClusterRead]:
        """The history that they hold, by cluster."""

    def state_of(self, cluster: ClusterRead) -> str:
        """The file with a cluster's state where its history ends."""

    def open_files(self, cluster_id: str) -> dict[str, int]:
        """The files in which versions of a cluster's partitions may be that hold still, with their bytes."""


@dataclass(frozen=True, slots=True)
class ClusterHistoryPlan:
    """The records to be read of one cluster, and the buckets they go into."""

    cluster_id: str
    buckets: range
    #: Of the records that are read, the second one exclusive; None = all there are.
    first_offset: int
    end_offset: int | None
    #: Of the checkpoint that the history begins with: the last offset that it covers, and that record's time.
    base: tuple[int, int] | None
    #: What the tables hold of it, which is gone on with.
    held: ClusterRead | None = None

    @property
    def new_offset(self) -> int:
        """Of the first record that the tables do not hold."""
        return self.first_offset if self.held is None else self.held.end_offset


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """The records to be read, and their division among tasks. Travels to the workers."""

    clusters: list[ClusterHistoryPlan]
    #: By bucket the number of its cluster.
    cluster_of_bucket: list[int]
    #: The number of a task's cluster, and the task as JSON, or as ``held.held_tasks`` names it; those of what a cluster
    #: begins with come first.
    tasks: list[tuple[int, str]]
    #: Which configs are hidden in the tables.
    is_secret: IsSecret = no_secrets

    @classmethod
    def of(
        cls,
        clusters: Sequence[InputCluster],
        options: HistoryOptions,
        refused: dict[str, QuorateError],
        tables: HeldTables | None = None,
    ) -> HistoryPlan:
        """The plan for these clusters.

        Args:
            refused: gets those, by id, of which nothing can be made, and why; if there may be only one, it is raised.
            tables: what is gone on with.

        Raises:
            QuorateError: of the one cluster that there may be.
        """
        plan = cls([], [], [], options.is_secret)
        held = {} if tables is None else tables.held
        for cluster in clusters:
            try:
                if tables is not None and cluster.cluster_id in held:
                    plan._go_on(cluster, options, held[cluster.cluster_id], tables)
                elif held and not options.mixed:
                    raise _of_others(cluster, held)
                else:
                    plan._begin(cluster, options)
            except QuorateError as error:
                if not options.mixed:
                    raise
                refused[cluster.cluster_id] = error
        return plan

    def _begin(self, cluster: InputCluster, options: HistoryOptions) -> None:
        end = _end(cluster, options, 0)
        checkpoint = _first_checkpoint(cluster, end)
        first = 0 if checkpoint is None else checkpoint.offset
        log = plan_log(cluster, first_offset=first, end_offset=end, range_bytes=options.range_bytes)
        held = [] if checkpoint is None else plan_checkpoint(cluster, checkpoint, range_bytes=options.range_bytes)
        base = None if checkpoint is None else (first - 1, _time_of(held[0]))
        size = sum(file.size for file in cluster.segments)
        if not size and checkpoint is None:
            raise InputError(
                cluster.segments[0].name, "is empty, and there is no checkpoint", "give a log with records"
            )
        its = ClusterHistoryPlan(cluster.cluster_id, self._buckets(size, options), first, end, base)
        self._add(its, [task_to_json(task) for task in (*held, *log)])

    def _go_on(self, cluster: InputCluster, options: HistoryOptions, held: ClusterRead, tables: HeldTables) -> None:
        resume = require_goes_on(cluster, held)
        end = _end(cluster, options, held.end_offset)
        log = plan_log(cluster, first_offset=resume.offset, end_offset=end, range_bytes=options.range_bytes)
        files = tables.open_files(cluster.cluster_id)
        size = sum(one.file.size for one in all_ranges(log)) + sum(files.values())
        its = ClusterHistoryPlan(cluster.cluster_id, self._buckets(size, options), resume.offset, end, None, held)
        self._add(its, [*held_tasks(files, tables.state_of(held), options.range_bytes), *map(task_to_json, log)])

    def _buckets(self, size: int, options: HistoryOptions) -> range:
        before = len(self.cluster_of_bucket)
        return range(before, before + max(1, -(-size // options.bucket_bytes)))

    def _add(self, cluster: ClusterHistoryPlan, tasks: Sequence[str]) -> None:
        number = len(self.clusters)
        self.clusters.append(cluster)
        self.cluster_of_bucket.extend([number] * len(cluster.buckets))
        self.tasks.extend((number, task) for task in tasks)


def _end(cluster: InputCluster, options: HistoryOptions, held_end: int) -> int | None:
    """Up to where a cluster's log is read; not before the end of what is held of it."""
    ends = [] if options.end_offset is None else [options.end_offset]
    if options.append and cluster.mark is not None:
        ends.append(cluster.mark.commit)
    return max(min(ends), held_end) if ends else None


def _of_others(cluster: InputCluster, held: Collection[str]) -> InputError:
    where = (cluster.segments + cluster.checkpoints)[0].name
    return InputError(
        where, f"is of cluster {cluster.cluster_id}, and the tables hold {', '.join(sorted(held))}",
        "give a log of theirs, or let the tables hold several clusters with --mixed",
    )  # fmt: skip


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
