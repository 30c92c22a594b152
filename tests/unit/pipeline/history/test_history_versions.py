"""Every version: valid at an offset is what the controllers' replay has there; nothing overlaps, nothing is missing."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records import records as r
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.ranges import plan_checkpoint, plan_log
from quorate.pipeline.files.walk import RecordSelection
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.history.bucket_keys import partition_keys, spark_hash
from quorate.pipeline.history.catalogue import CatalogueVersions
from quorate.pipeline.history.cells import decode_rare, decode_tables, encode_rare, encode_tables, split_rows
from quorate.pipeline.history.partitions import partition_versions
from quorate.pipeline.history.reading import read_task
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.history.writing import write_days
from quorate.pipeline.tables.history_schema import PARTITION_VERSIONS
from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.scripts.generated_history.making import GenerationPlan, make_history
from quorate.snapshots.checkpoints.loading import load_image
from tests.history_versions import Row, changes_of, require_no_gaps, require_state
from tests.pipeline_logs import BEHEADED_LOG, KAFKA, KAFKA_LOG, LogWriter

BUCKETS = 3
#: By Spark 4.2 of 0, 1 and 12345.
HASHES = [933211791, -559580957, -2122148428]
TOPIC = b"\x11" * 16


def versions_of(path: Path, *, range_bytes: int = 150_000) -> tuple[dict[str, list[Row]], int]:
    """The tables of a directory's history as rows, in several tasks and buckets; and its end offset."""
    (cluster,) = find_inputs([str(path)])
    first = 0
    base, tasks = None, []
    if cluster.first_offset:
        checkpoint = next(file for file in cluster.checkpoints if file.offset >= (cluster.first_offset or 0))
        first = checkpoint.offset
        base = (first - 1, 1_000)
        tasks += plan_checkpoint(cluster, checkpoint, range_bytes=range_bytes)
    tasks += plan_log(cluster, first_offset=first, range_bytes=range_bytes)
    cells: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    rare = []
    end = first
    for task in tasks:
        found = read_task(task, RecordSelection(first_offset=first))
        end = max(end, found.end_offset)
        rare.append(encode_rare(found.rare))
        for bucket, shapes in enumerate(split_rows(found.rows, BUCKETS)):
            cells[bucket].append(encode_tables(shapes))
    timeline = Timeline(decode_rare(rare), end)
    partitions = [partition_versions(decode_tables(cell), timeline, "c", base) for cell in cells]
    tables = {name: table.to_pylist() for name, table in CatalogueVersions.of(timeline, base).tables("c").items()}
    tables["partition_versions"] = [row for table in partitions for row in table.to_pylist()]
    return tables, end


def offsets_of(first: int, end: int, count: int, seed: int) -> list[int]:
    return sorted({first + 1, *Random(seed).sample(range(first + 1, end + 1), count), end})


@pytest.mark.parametrize(
    ("path", "first"), [(KAFKA_LOG, 0), (BEHEADED_LOG, 15_719), (KAFKA / "dynamic-small" / "m1" / "log", 0)]
)
def test_versions_valid_at_an_offset_are_the_state_there_in_logs_of_kafka(path: Path, first: int) -> None:
    """From a checkpoint on, too."""
    tables, end = versions_of(path)

    require_no_gaps(tables)
    for offset in offsets_of(first, end, 5, seed=7):
        require_state(tables, load_image(path, offset), offset)


@pytest.mark.parametrize("seed", [21, 22])
def test_versions_valid_at_an_offset_are_the_state_there_in_a_made_up_history(tmp_path: Path, seed: int) -> None:
    """Clearings, transactions of all kinds, topics that come again, inside batches too."""
    make_history(GenerationPlan(3000, seed, segments=2), tmp_path / "made", lambda _: None)
    tables, end = versions_of(tmp_path / "made", range_bytes=40_000)

    require_no_gaps(tables)
    for offset in offsets_of(0, end, 25, seed):
        require_state(tables, load_image(tmp_path / "made", offset), offset)


def log_of(tmp_path: Path, *batches: list[Any]) -> Path:
    log = LogWriter(tmp_path / "cluster")
    for batch in batches:
        log.append(batch)
    return tmp_path / "cluster"


def partition(**fields: Any) -> r.PartitionRecord:
    known = {"topic_id": TOPIC, "partition_id": 0, "replicas": (1, 2), "isr": (1, 2), "leader": 1, "leader_epoch": 0}
    return r.PartitionRecord(**{**known, "partition_epoch": 0, "directories": (TOPIC, TOPIC), **fields})


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(**{"topic_id": TOPIC, "partition_id": 0, **fields})


def test_every_effective_change_is_one_version_and_a_clearing_only_where_there_was_something(tmp_path: Path) -> None:
    path = log_of(
        tmp_path,
        [r.TopicRecord("t", TOPIC), partition(), partition(partition_id=1)],
        [change(isr=(1,), eligible_leader_replicas=(2,))],
        [r.ClearElrRecord("t")],
        [r.ClearElrRecord("")],
        [change(leader=1)],
        [r.RemoveTopicRecord(TOPIC)],
        [r.ClearElrRecord("")],
    )
    tables, _ = versions_of(path)
    rows = [row for row in tables["partition_versions"] if row["partition"] == 0]

    assert [(row["record_offset"], row["change"], row["valid_to_offset"], row["removed"]) for row in rows] == [
        (1, "created", 3, False),
        (3, "changed", 4, False),
        (4, "elr_cleared", 6, False),
        (6, "changed", 7, True),
    ]
    assert [(row["partition_epoch"], row["leader_epoch"]) for row in rows] == [(0, 0), (1, 0), (2, 0), (3, 1)]
    assert [row["eligible_leader_replicas"] for row in rows] == [[], [2], [], []]
    assert changes_of(tables["partition_versions"]) == {"created": 2, "changed": 2, "elr_cleared": 1}


def test_transaction_counts_from_its_end_on_or_not_at_all(tmp_path: Path) -> None:
    path = log_of(
        tmp_path,
        [r.TopicRecord("t", TOPIC), partition()],
        [r.BeginTransactionRecord("a"), change(leader=2), change(leader=1), r.EndTransactionRecord()],
        [r.BeginTransactionRecord("b"), change(leader=-1)],
        [r.AbortTransactionRecord("no")],
        [r.BeginTransactionRecord("c"), change(leader=-1)],
    )
    tables, _ = versions_of(path)
    rows = tables["partition_versions"]

    assert [(r_["record_offset"], r_["valid_from_offset"], r_["valid_to_offset"], r_["leader"]) for r_ in rows] == [
        (1, 1, 5, 1),
        (3, 5, 5, 2),
        (4, 5, None, 1),
    ]


def test_change_of_replicas_without_directories_keeps_those_there_are(tmp_path: Path) -> None:
    """Only records from before directories do that."""
    other = b"\x22" * 16
    path = log_of(
        tmp_path,
        [r.TopicRecord("t", TOPIC), partition(directories=(TOPIC, other))],
        [change(replicas=(2, 3))],
        [change(replicas=(3, 2, 1))],
    )
    tables, end = versions_of(path)

    for offset in range(1, end + 1):
        require_state(tables, load_image(path, offset), offset)


@pytest.mark.parametrize("records", [[change(leader=1)], [r.TopicRecord("t", TOPIC), change(leader=1)]])
def test_change_of_what_is_not_there_is_refused_with_its_offset(tmp_path: Path, records: list[Any]) -> None:
    path = log_of(tmp_path, records)

    with pytest.raises(FoldRefused, match=rf"^offset {len(records) - 1}: "):
        versions_of(path)


def test_files_are_by_day_and_nothing_is_visible_before_all_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    days = np.array([0, 1, 1], "datetime64[D]").astype("datetime64[us]")
    table = PARTITION_VERSIONS.empty_table().select(["partition", "valid_from"])
    table = pa.table(
        [pa.array([1, 2, 3], pa.int32()), pa.array(days).cast(table.schema.field(1).type)], schema=table.schema
    )
    with ResultDirectory(out) as directory:
        written = write_days(table, directory.staging, "partition_versions", "0000")
        assert not out.exists()
        directory.commit({"rows": written.rows}, {"partition_versions": written})

    assert (written.rows, written.files) == (3, 2)
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == [
        "manifest.json",
        "partition_versions/day=1970-01-01/part-0000.parquet",
        "partition_versions/day=1970-01-02/part-0000.parquet",
    ]
    assert pq.read_table(out / "partition_versions").num_rows == 3


def test_keys_are_hashed_as_spark_does() -> None:
    """The numbers are Spark's own; each bucket has a partition to itself."""
    assert [spark_hash(number) for number in (0, 1, 12345)] == HASHES
    assert [spark_hash(key) % 7 for key in partition_keys(7)] == list(range(7))


def test_a_failure_leaves_nothing_and_what_is_there_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError), ResultDirectory(out):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    (out / "something").touch()

    with pytest.raises(StorageError, match="holds something already"):
        ResultDirectory(out)
