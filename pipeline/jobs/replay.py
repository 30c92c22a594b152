"""``replay``: the state of a cluster at any moment, as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.hidden_values import IsSecret, hides, no_secrets
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import plan_log
from quorate.pipeline.files.replay_bases import ReplayBase, replay_base, require_offset
from quorate.pipeline.files.storage import absolute, checked, read
from quorate.pipeline.files.walk import read_range
from quorate.pipeline.fold.compose import compose
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.leaves import topic_leaves
from quorate.pipeline.fold.reading import ReadCounts, joined_counts
from quorate.pipeline.fold.state import catalogue_leaves, replayed
from quorate.pipeline.fold.timeline import Located, Topics, Transactions
from quorate.pipeline.jobs.folding import END, TASK_BYTES, FoldPlan, fold, plan_fold
from quorate.pipeline.spark.worker_use import WorkerUse
from quorate.pipeline.tables.result_directory import MANIFEST, ResultDirectory
from quorate.pipeline.tables.state_tables import PARTITIONS, TABLES, catalogue_tables, partitions_table
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import NOTHING, Written, require_directory, write_part
from quorate.snapshots.digest import DIGEST_BYTES, digest_bytes, root

_RESULT: Final = "leaves binary, written string, counts string"
_SCHEMA: Final = pa.schema([("leaves", pa.binary()), ("written", pa.string()), ("counts", pa.string())])


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The moment, and the base to begin with.

    Attributes:
        at: offset; the state before it. time: milliseconds since 1970; the state after the last batch not later.
            None for both: the end of the log. base: tables that an earlier replay wrote, to begin with; None = the
            newest checkpoint, or offset 0. cluster_id: as ``inputs.find_inputs`` takes it.
            table_format: of the tables. is_secret: which configs are hidden in the tables, and credentials with them;
            what is hidden is in the digest all the same.
    """

    at: int | None = None
    time: int | None = None
    base: str | Path | None = None
    cluster_id: str | None = None
    table_format: TableFormat = TableFormat.PARQUET
    task_bytes: int = TASK_BYTES
    is_secret: IsSecret = no_secrets


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The tables that were written; their manifest."""

    cluster_id: str
    #: The state is that before this offset.
    offset: int
    digest: str
    #: What it was replayed from: a checkpoint, tables, or nothing; and from which offset on.
    base: str | None
    base_offset: int
    #: Read behind the base.
    records: int
    #: Whether secrets are hidden in the tables, which no state can be made of then.
    hides_secrets: bool
    #: By table.
    rows: dict[str, int]
    #: Processor seconds of the workers by what they did, and of the worker that took most, MB.
    processor_seconds: dict[str, float]
    worker_mb_max: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def replay(spark: SparkSession, paths: Sequence[str], out: str | Path, options: ReplayOptions) -> ReplayResult:
    """Write the tables of a cluster's state to ``out``, all or none.

    Raises:
        StorageError, PipelineError: files are damaged, missing, or do not reach to the moment; ``out`` holds something.
        FoldRefused: a record that cannot be; as ``WorkerError`` from a worker. NotShared: as ``ResultDirectory``.
    """
    (cluster,) = find_inputs(paths, cluster_id=options.cluster_id)
    at = options.at if options.time is None else offset_at_time(cluster, options.time)
    moment = END if at is None else at
    with ResultDirectory(out, options.table_format) as directory:
        base, name, tables = _base(cluster, at, options.base)
        plan = plan_fold(cluster, base, [moment], end=at, task_bytes=options.task_bytes, tables=tables)
        use = WorkerUse(spark)
        rows = _written(spark, plan, cluster.cluster_id, moment, directory.staging, use, options.is_secret)
        counts = next((ReadCounts(**json.loads(row.counts)) for row in rows if row.counts), ReadCounts())
        end = max(counts.end_offset, base.first_offset)
        if at is not None and end < at:
            name = cluster.segments[-1].name if cluster.segments else paths[0]
            raise PipelineError(f"{name}: the log ends at offset {end}, before {at}; ask for an offset up to {end}")
        written = dict.fromkeys(TABLES, NOTHING)
        for row in rows:
            for table, told in json.loads(row.written).items():
                written[table] += Written(**told)
        if not written["partitions"].rows:
            written |= _write(directory.staging, "0", {"partitions": PARTITIONS.empty_table()})
        digest = digest_bytes(root(int.from_bytes(row.leaves, "big") for row in rows)).hex()
        result = ReplayResult(
            cluster.cluster_id,
            end,
            digest,
            name,
            base.first_offset,
            counts.records,
            hides(options.is_secret),
            {table: one.rows for table, one in written.items()},
            use.processor_seconds,
            use.mb_max,
        )
        directory.commit(result.as_json(), written)
    return result


def _base(cluster: InputCluster, at: int | None, given: str | Path | None) -> tuple[ReplayBase, str | None, str | None]:
    if given is None:
        base = replay_base(cluster, at)
        return base, None if base.checkpoint is None else base.checkpoint.name, None
    tables = absolute(checked(str(given)))
    manifest = state_manifest(tables)
    offset = manifest["offset"]
    if manifest["cluster_id"] != cluster.cluster_id:
        raise PipelineError(
            f"{tables}: the tables are of cluster {manifest['cluster_id']}, the log of {cluster.cluster_id}; "
            "give the tables of the same cluster"
        )
    if manifest.get("hides_secrets", False):
        raise PipelineError(
            f"{tables}: secrets are hidden in these tables, so no state can be made of them; "
            "replay without --base, or give tables that were written with --show-secrets"
        )
    if at is not None and at < offset:
        raise PipelineError(f"{tables}: the tables are the state at {offset}, after {at}; replay without a base")
    require_offset(cluster, offset)
    return ReplayBase(None, offset), tables, tables


def state_manifest(tables: str | Path) -> dict[str, Any]:
    """The manifest of a state's tables: ``cluster_id``, ``offset`` and the rest of ``ReplayResult``.

    Raises:
        PipelineError: they are none.
    """
    try:
        found: dict[str, Any] = json.loads(read(f"{tables}/{MANIFEST}"))
        return {"cluster_id": found["cluster_id"], "offset": int(found["offset"]), **found}
    except (StorageError, OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{tables}: holds no tables of a state ({error}); give what replay wrote") from error


def offset_at_time(cluster: InputCluster, time: int) -> int:
    """The offset before which a state is that at a time: the end of the last batch that is not later (``Moment``).

    Raises:
        StorageError: damage on the way.
    """
    end = cluster.first_offset or 0
    for task in plan_log(cluster):
        for one in task.ranges:
            for chunk in read_range(one):
                batches = chunk.batches
                in_time = np.flatnonzero(batches.timestamps <= time)
                if in_time.size:
                    is_last = in_time[-1] + 1 == len(batches.base_offsets)
                    end = chunk.end_offset if is_last else int(batches.base_offsets[in_time[-1] + 1])
    return end


def _written(
    spark: SparkSession,
    plan: FoldPlan,
    cluster_id: str,
    moment: int,
    directory: str,
    use: WorkerUse,
    is_secret: IsSecret,
) -> list[Any]:
    def of_bucket(elements: Elements, records: list[Located]) -> pa.Table:
        transactions = Transactions.of(located for located in records if located.offset < moment)
        topics = Topics(transactions.counted(records, moment))
        state = compose(elements, topics, transactions, moment)
        names = {topic_id: life.name for topic_id, life in topics.alive().items()}
        part = state.topic_ids[0].tobytes().hex() if len(state) else ""
        table = partitions_table(state, names, cluster_id)
        written = _write(directory, part, {"partitions": table}) if part else {}
        return _row(topic_leaves(state, names), written, None)

    def of_others(records: list[Located], counts: list[ReadCounts]) -> pa.Table:
        transactions = Transactions.of(located for located in records if located.offset < moment)
        catalogue = replayed(transactions.counted(records, moment))
        written = _write(directory, "0", catalogue_tables(catalogue, cluster_id, is_secret))
        joined = joined_counts(sorted(counts, key=lambda part: part.first_offset))
        return _row(catalogue_leaves(catalogue), written, json.dumps(asdict(joined)))

    found: list[Any] = fold(spark, plan, of_bucket, of_others, _RESULT, use).collect()
    return found


def _row(leaves: int, written: dict[str, Written], counts: str | None) -> pa.Table:
    told = json.dumps({name: asdict(one) for name, one in written.items()})
    return pa.Table.from_pylist(
        [{"leaves": leaves.to_bytes(DIGEST_BYTES, "big"), "written": told, "counts": counts}], _SCHEMA
    )


def _write(directory: str, part: str, tables: dict[str, pa.Table]) -> dict[str, Written]:
    """Write a worker's part of tables; a worker that does it again writes the same files."""
    require_directory(directory)
    written = {}
    for name, table in tables.items():
        written[name] = write_part(table, f"{directory}/{name}/part-{part}.parquet", compression="zstd")
    return written
