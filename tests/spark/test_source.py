"""`quorate-log` in Spark: rows, filters that are pushed down, narrowing, archives, several clusters, and bad input."""

import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.pipeline.failures import translated
from tests.pipeline_logs import BEHEADED_LOG, KAFKA_LOG, TIME, LogWriter

#: Of the log in KAFKA_LOG.
END = 10996
RECORDS = [
    one.record
    for file in find_files(KAFKA_LOG)
    if not file.is_checkpoint
    for batch in iter_batches(file)
    for one in iter_records(batch.data)
]
TYPES = Counter(type(record).__name__ for record in RECORDS)
#: Changes of partitions that name a leader.
ELECTIONS = sum(isinstance(record, PartitionChangeRecord) and record.leader != -2 for record in RECORDS)


@pytest.fixture
def load(spark: SparkSession) -> Callable[..., DataFrame]:
    """Read paths with options."""

    def load(*paths: Path, schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("quorate-log").options(**options)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load([str(path) for path in paths] if len(paths) > 1 else str(paths[0]))

    return load


def refusal(frame: Callable[[], Any]) -> str:
    """The sentence that a user reads."""
    with pytest.raises(PySparkException) as caught:
        frame()
    return str(translated(caught.value))


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """Three segments of small batches."""
    log = LogWriter(tmp_path / "node")
    for index in range(3):
        if index:
            log.roll()
        log.append_small(10)
    return log


def test_rows_of_kafkas_log_are_one_a_record_with_typed_columns(load: Callable[..., DataFrame]) -> None:
    """Each offset once, however many tasks there are; nested columns can be asked as SQL does."""
    frame = load(KAFKA_LOG, rangeBytes=50_000)
    found = frame.agg(F.count("*"), F.countDistinct("offset"), F.min("offset"), F.max("offset")).first()
    topics = frame.where("type = 'TopicRecord'").select("topic.name", "topic.topic_id").collect()
    leaders = frame.where("partition_change.leader is not null").count()

    assert tuple(found or ()) == (END, END, 0, END - 1)
    assert frame.rdd.getNumPartitions() > 5
    assert len(topics) == TYPES["TopicRecord"]
    assert "alpha" in {row.name for row in topics}
    assert leaders == ELECTIONS


def test_count_of_narrowed_columns_is_the_count(load: Callable[..., DataFrame]) -> None:
    """By the schema of the read, and by the option."""
    assert load(KAFKA_LOG, schema="offset bigint").count() == END
    assert load(KAFKA_LOG, columns="offset, type").columns == ["offset", "type"]
    assert load(KAFKA_LOG, columns="offset,type").groupBy("type").count().count() == len(TYPES)


def test_filters_are_pushed_down_and_exact(load: Callable[..., DataFrame]) -> None:
    """By offset, time, type and cluster; what is left to Spark is left to it."""
    frame = load(KAFKA_LOG, rangeBytes=50_000, columns="offset,time,type,cluster_id")
    rows = frame.collect()
    middle: datetime = rows[5000].time
    cluster = rows[0].cluster_id
    narrowed = frame.where(F.col("offset") >= 100).where("offset < 9000 and type in ('TopicRecord', 'ConfigRecord')")
    later = frame.where(F.col("time") > F.lit(middle)).where(F.col("cluster_id") == cluster)

    expected = [row for row in rows if 100 <= row.offset < 9000 and row.type in ("TopicRecord", "ConfigRecord")]
    assert narrowed.collect() == expected
    assert narrowed.rdd.getNumPartitions() < frame.rdd.getNumPartitions()
    assert later.count() == sum(row.time > middle for row in rows)
    assert frame.where("cluster_id = 'another'").count() == 0
    assert frame.where("offset % 2 = 0 and offset >= 10").count() == (END - 10) // 2
    assert frame.where("offset > 20 and offset < 10").count() == 0


def test_options_bound_offsets_and_types(load: Callable[..., DataFrame]) -> None:
    """The end is exclusive."""
    frame = load(KAFKA_LOG, startOffset=50, endOffset=60, columns="offset")

    assert [row.offset for row in frame.collect()] == list(range(50, 60))
    assert load(KAFKA_LOG, types="TopicRecord", columns="offset").count() == TYPES["TopicRecord"]


def test_checkpoints_are_read_when_asked_for(load: Callable[..., DataFrame]) -> None:
    """Each with the offsets of its own file."""
    frame = load(KAFKA_LOG, checkpoints=True, columns="kind,file,offset")
    counts = {(row.kind, Path(row.file).name): row["count"] for row in frame.groupBy("kind", "file").count().collect()}

    assert sorted(count for (kind, _), count in counts.items() if kind == "checkpoint") == [2651, 3205, 3205]
    assert sum(count for (kind, _), count in counts.items() if kind == "log") == END


def test_archive_and_directory_of_one_cluster_are_one_log(
    load: Callable[..., DataFrame], log: LogWriter, tmp_path: Path
) -> None:
    """Old segments in a zip, newer ones where they were written."""
    first, second, _ = sorted(log.directory.glob("*.log"))
    with zipfile.ZipFile(tmp_path / "old.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(log.path / "meta.properties", "node/meta.properties")
        for segment in (first, second):
            archive.write(segment, f"node/__cluster_metadata-0/{segment.name}")
    first.unlink()

    frame = load(tmp_path / "old.zip", log.path, columns="offset")
    assert sorted(row.offset for row in frame.collect()) == list(range(log.offset))


def test_several_clusters_are_told_apart_by_a_column(load: Callable[..., DataFrame], log: LogWriter) -> None:
    """With the option."""
    frame = load(KAFKA_LOG, log.path, mixed=True, columns="cluster_id,offset")
    counts = {row.cluster_id: row["count"] for row in frame.groupBy("cluster_id").count().collect()}

    assert sorted(counts.values()) == sorted([END, log.offset])
    assert counts["cluster-a"] == log.offset


# --- bad input ---------------------------------------------------------------------------------------


def test_bad_paths_are_refused_in_one_sentence(load: Callable[..., DataFrame], tmp_path: Path, log: LogWriter) -> None:
    """Missing, empty, of two clusters, beginning too late: which path, and what to do."""
    (tmp_path / "empty").mkdir()
    sentences = {
        refusal(load(tmp_path / "nowhere").count): f"{tmp_path}/nowhere: no such file or directory; give ",
        refusal(load(tmp_path / "empty").count): f"{tmp_path}/empty: holds no segment (*.log) and no checkpoint",
        refusal(load(KAFKA_LOG, log.path).count): "; read one cluster at a time, or set the option mixed to true",
        refusal(
            load(BEHEADED_LOG, startOffset=100).count
        ): "the log begins at offset 12538, after the offset 100 asked",
    }

    assert [found for found, part in sentences.items() if part not in found or "\n" in found] == []


def test_bad_options_are_refused_in_one_sentence(load: Callable[..., DataFrame]) -> None:
    """With what there is instead."""
    assert "has no option 'startofset'; it has path," in refusal(lambda: load(KAFKA_LOG, startOfset=1))
    assert refusal(lambda: load(KAFKA_LOG, endOffset=-1)) == "option endOffset: '-1' is no whole number from 0 on"
    assert "option types: 'Topics' is none of " in refusal(lambda: load(KAFKA_LOG, types="Topics"))
    assert "column offset of quorate-log is of type int64, not string" in refusal(
        lambda: load(KAFKA_LOG, schema="offset string").count()
    )


@pytest.mark.parametrize("kind", ["flipped", "truncated", "missing", "overlapping"])
def test_damage_in_a_worker_is_one_sentence_with_place_and_offset(
    load: Callable[..., DataFrame], log: LogWriter, kind: str
) -> None:
    """Never a count that is too small."""
    first, second, third = sorted(log.directory.glob("*.log"))
    batch = list(iter_batches(find_files(log.path)[1]))[4]
    offset = batch.header.base_offset
    if kind == "flipped":
        data = bytearray(second.read_bytes())
        data[batch.position + 9] ^= 1
        second.write_bytes(data)
        sentence = f"{second}: damaged at byte {batch.position}, offset {offset}: "
    elif kind == "truncated":
        second.write_bytes(second.read_bytes()[: batch.position])
        sentence = (
            f"{second}: damaged at byte {batch.position}, offset {offset}: it ends at offset {offset}, but {third}"
        )
    elif kind == "missing":
        second.unlink()
        sentence = f"but {third} begins at {int(third.stem)}: restore what is missing in between"
    else:
        shutil.copy(second, first.with_name("00000000000000000003.log"))
        sentence = "the two overlap; keep one of them"

    found = refusal(load(log.path, columns="offset").count)
    assert sentence in found
    assert "\n" not in found


def test_damage_goes_into_the_quarantine_and_the_rest_is_read(
    load: Callable[..., DataFrame], log: LogWriter, tmp_path: Path
) -> None:
    """One row a stretch, with both its ends; the same again when the job runs again."""
    _, second, _ = sorted(log.directory.glob("*.log"))
    batches = list(iter_batches(find_files(log.path)[1]))
    data = bytearray(second.read_bytes())
    data[batches[2].position + 70] ^= 1
    data[batches[6].position + 9] ^= 1
    second.write_bytes(data)
    lost = [batches[2].header, batches[6].header]
    aside = tmp_path / "aside"

    for _ in range(2):
        rows = load(log.path, columns="offset", quarantine=aside).collect()
        gone = {offset for header in lost for offset in range(header.base_offset, header.end_offset)}
        assert sorted(row.offset for row in rows) == [one for one in range(log.offset) if one not in gone]
    table = sorted(pq.read_table(aside).to_pylist(), key=lambda row: row["offset"])
    assert [(row["offset"], row["end_offset"], row["position"], row["end_position"]) for row in table] == [
        (batches[n].header.base_offset, batches[n].header.end_offset, batches[n].position, batches[n + 1].position)
        for n in (2, 6)
    ]
    assert {(row["cluster_id"], row["file"]) for row in table} == {("cluster-a", str(second))}


def test_times_of_batches_are_columns_in_utc(load: Callable[..., DataFrame], log: LogWriter) -> None:
    """Microseconds."""
    row = load(log.path).select(F.unix_millis("time").alias("ms")).first()

    assert row is not None
    assert row.ms == TIME
