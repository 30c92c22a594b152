"""The history job: its tables against the controllers' own states, and what a failure leaves."""

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.records import NoOpRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.pipeline.comparing.rows import ComparedMoment
from quorate.pipeline.errors import BadSetting, WorkerError
from quorate.pipeline.failures import translated
from quorate.pipeline.files.inputs import InputError
from quorate.pipeline.files.storage import forget_stores
from quorate.pipeline.history.page import history_page
from quorate.pipeline.history.plan import HistoryOptions
from quorate.pipeline.history.report import HistoryReport
from quorate.pipeline.history.series import history_series
from quorate.pipeline.jobs.capacity import Wishes, capacity
from quorate.pipeline.jobs.compare import compare
from quorate.pipeline.jobs.compared_sides import RequestedSide
from quorate.pipeline.jobs.history import make_history
from quorate.pipeline.jobs.incidents import find_incidents, version_tables, write_tables
from quorate.pipeline.jobs.replay import ReplayOptions, replay
from quorate.pipeline.jobs.replay_page import replay_page
from quorate.pipeline.tables.history_schema import TABLES
from quorate.pipeline.tables.table_clusters import WhichCluster
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import NotShared
from quorate.scripts.generated_history import making
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.incidents.thresholds import Thresholds
from tests.history_versions import require_no_gaps, require_state
from tests.object_store import object_store
from tests.pipeline_logs import BEHEADED_LOG, LogWriter

SMALL_CLUSTER, LARGE_CLUSTER = "xnVrj2ZpTPOxSQQa-ebb-g", "CGX0FmftRoq9tiEOLU7vAA"
SMALL = HistoryOptions(range_bytes=100_000, bucket_bytes=100_000)


def test_tables_of_a_made_up_history_hold_its_states(spark: SparkSession, tmp_path: Path) -> None:
    """Several tasks and buckets, transactions, and the end inside one."""
    log, out = tmp_path / "log", tmp_path / "out"
    made = making.make_history(making.GenerationPlan(6000, 5, segments=3), log, lambda _: None)

    report = make_history(spark, [str(log)], out, SMALL)

    tables = {name: ds.dataset(out / name, partitioning="hive").to_table().to_pylist() for name in TABLES}
    (cluster,) = report.clusters
    assert (report.records, cluster.records, cluster.end_offset) == (6000, 6000, made.end_offset)
    assert {name: written.rows for name, written in report.tables.items()} == {
        name: len(rows) for name, rows in tables.items()
    }
    require_no_gaps(tables)
    for offset in (700, 2345, 4999, 6000):
        require_state(tables, load_image(log, offset), offset)
    by_spark = spark.read.parquet(str(out / "partition_versions"))
    assert by_spark.count() == len(tables["partition_versions"])
    assert by_spark.where("valid_to_offset is null").count() == made.operations.pool.held_count
    series = history_series(report.counts[cluster.cluster_id])
    assert {name: sum(counts) for name, counts in series.begun.items()} == {
        name: len(rows) for name, rows in tables.items()
    }
    assert series.held["partitions"][-1] == made.operations.pool.held_count
    assert len(series.days) == (series.days[-1] - series.days[0]).days + 1
    assert sum(one.versions for one in series.topics) <= len(tables["partition_versions"])
    leaderless = [row for row in tables["partition_versions"] if row["leader"] == -1]
    last = max(row["valid_from"] for rows in tables.values() for row in rows)
    lasted = sum(((row["valid_to"] or last) - row["valid_from"]).total_seconds() for row in leaderless)
    assert sum(series.leaderless_hours) == pytest.approx(lasted / 3600)
    counted = Counter(row["topic_id"] for row in tables["partition_versions"])
    assert [one.versions for one in series.topics] == [count for _, count in counted.most_common(50)]
    page = history_page(report, {cluster.cluster_id: series}).render()
    assert "Topics that changed most" in page
    assert series.topics[0].topic in page


def test_tables_of_two_clusters_hold_the_history_of_each(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    """One of them without its head: it begins at its checkpoint. The readers of the tables ask which is meant.

    The tables are Delta's: those who read Parquet see the same.
    """
    logs, out = (kafka_data / "dynamic-small/m1/log", BEHEADED_LOG), tmp_path / "out"
    images = dict(zip((SMALL_CLUSTER, LARGE_CLUSTER), map(load_image, logs), strict=True))

    options = replace(SMALL, mixed=True, table_format=TableFormat.DELTA)
    report = make_history(spark, [str(log) for log in logs], out, options)

    assert json.loads((out / "manifest.json").read_text()) == report.as_json()
    assert {one.cluster_id: (one.first_offset, one.end_offset) for one in report.clusters} == {
        SMALL_CLUSTER: (0, 77),
        LARGE_CLUSTER: (15_719, 21_247),
    }
    assert report.records == sum(one.records for one in report.clusters) == 77 + 21_247 - 15_719
    both = {name: ds.dataset(out / name, partitioning="hive").to_table() for name in TABLES}
    assert {name: written.rows for name, written in report.tables.items()} == {
        name: table.num_rows for name, table in both.items()
    }
    for name, table in both.items():
        assert same_rows(DeltaTable(out / name).to_pyarrow_table(), table)
    for one in report.clusters:
        of_it = pc.field("cluster_id") == one.cluster_id
        tables = {name: table.filter(of_it).to_pylist() for name, table in both.items()}
        require_no_gaps(tables)
        require_state(tables, images[one.cluster_id], one.end_offset)
    require_page_of_each(report, images)

    named = rf"hold 2 clusters \({LARGE_CLUSTER}, {SMALL_CLUSTER}\): say which, with --cluster"
    with pytest.raises(WhichCluster, match=named):
        capacity(spark, [], Wishes(), tables=out)
    assert capacity(spark, [], Wishes(), tables=out, cluster_id=SMALL_CLUSTER).summary.partitions == 8
    with pytest.raises(WhichCluster, match=f"{named}, or take all with --mixed"):
        version_tables(out)
    with pytest.raises(WhichCluster, match=f"hold no cluster other: they hold {LARGE_CLUSTER}, {SMALL_CLUSTER}"):
        version_tables(out, cluster_id="other")
    versions, _ = version_tables(out, cluster_id=SMALL_CLUSTER)
    assert len(versions.brokers()) == pc.sum(pc.equal(both["broker_versions"]["cluster_id"], SMALL_CLUSTER)).as_py()
    assert version_tables(out, mixed=True)[1] == set(images)
    not_of_it = find_incidents(spark, out, [str(logs[1])], Thresholds(), cluster_id=SMALL_CLUSTER)
    with pytest.raises(InputError, match=f"is of cluster {LARGE_CLUSTER}, not of {SMALL_CLUSTER}"), not_of_it:
        pass


def require_page_of_each(report: HistoryReport, images: Mapping[str, MetadataImage]) -> None:
    """Its figures are counted together, and are those of each cluster."""
    drawn = {name: history_series(counts) for name, counts in report.counts.items()}
    assert drawn[SMALL_CLUSTER].held == {"partitions": [8], "topics": [2]}
    assert drawn[LARGE_CLUSTER].held["partitions"] == [len(images[LARGE_CLUSTER].partitions)]
    assert sum(one.versions for one in drawn[SMALL_CLUSTER].topics) < 77 < len(drawn[LARGE_CLUSTER].topics) * 100
    page = history_page(report, drawn).render()
    assert page.count(f'href="#{LARGE_CLUSTER}"') == 1
    assert "History of 2 clusters" in page
    assert f"Growth of {SMALL_CLUSTER}" in page


def same_rows(delta: pa.Table, parquet: pa.Table) -> bool:
    """Whether two tables of versions hold the same, in whatever order; days are dates in one, texts in the other."""
    columns = parquet.column_names

    def rows(table: pa.Table) -> list[str]:
        return sorted(str({name: str(row[name]) for name in columns}) for row in table.select(columns).to_pylist())

    return sorted(delta.column_names) == sorted(columns) and rows(delta) == rows(parquet)


def test_history_that_is_gone_on_with_is_that_of_one_run(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    """A second run reads on, and those that follow read what is in the tables now, not what files lie there."""
    log, out, whole = str(kafka_data / "dynamic-small/m1/log"), tmp_path / "out", tmp_path / "whole"
    options = replace(SMALL, table_format=TableFormat.DELTA, append=True)

    make_history(spark, [log], out, replace(options, end_offset=46))
    report = make_history(spark, [log], out, options)
    make_history(spark, [log], whole, SMALL)

    (read,) = report.clusters
    assert (read.first_offset, read.end_offset, read.records, report.records) == (46, 77, 31, 31)
    told = json.loads((out / "manifest.json").read_text())
    assert [(one["first_offset"], one["end_offset"], one["records"]) for one in told["clusters"]] == [(0, 77, 77)]
    for name in TABLES:
        assert same_rows(
            DeltaTable(out / name).to_pyarrow_table(), ds.dataset(whole / name, partitioning="hive").to_table()
        )
        assert told["tables"][name]["rows"] == report.tables[name].rows == ds.dataset(whole / name).count_rows()
    assert len(list(out.glob("partition_versions/**/*.parquet"))) > told["tables"]["partition_versions"]["files"]
    found = []
    for tables in (out, whole):
        plan = capacity(spark, [], Wishes(), tables=tables)
        with find_incidents(spark, str(tables), [log], Thresholds()) as incidents:
            found.append((plan.as_json(), incidents.incidents))
    assert found[0] == found[1]


def test_delta_tables_of_nothing_have_all_columns(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    """A history of the first record alone, and the state there, with which another replay begins."""
    log, delta = str(kafka_data / "dynamic-small/m1/log"), TableFormat.DELTA
    make_history(spark, [log], tmp_path / "history", HistoryOptions(end_offset=1, table_format=delta))
    state = replay(spark, [log], tmp_path / "state", ReplayOptions(at=1, table_format=delta))

    for name, schema in TABLES.items():
        table = DeltaTable(tmp_path / "history" / name)
        assert table.metadata().partition_columns == ["day"]
        found = table.to_pyarrow_table()
        assert (found.num_rows, found.column_names) == (0, [*schema.names, "day"])
    assert {
        name: DeltaTable(tmp_path / "state" / name).to_pyarrow_table().num_rows for name in state.rows
    } == state.rows
    assert state.rows["partitions"] == 0
    later = replay(spark, [log], tmp_path / "later", ReplayOptions(base=tmp_path / "state"))
    assert later.digest == digest_image(load_image(Path(log))).text


def test_paths_that_may_not_be_mixed_are_refused(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    """Two clusters, an offset for both, and two nodes of one cluster, whose logs are two."""
    log = str(kafka_data / "dynamic-small/m1/log")
    other = LogWriter(tmp_path / "node", SMALL_CLUSTER)
    other.append([NoOpRecord()])
    mixed, out = HistoryOptions(mixed=True), tmp_path / "out"

    with pytest.raises(InputError, match=f"is of cluster {SMALL_CLUSTER}, while .* is of {LARGE_CLUSTER}; read one"):
        make_history(spark, [log, str(BEHEADED_LOG)], out, HistoryOptions())
    with pytest.raises(BadSetting, match=rf"offset 50 means nothing for several clusters \({LARGE_CLUSTER}, "):
        make_history(spark, [log, str(BEHEADED_LOG)], out, replace(mixed, end_offset=50))
    with pytest.raises(InputError, match="different segments of one name"):
        make_history(spark, [log, str(other.path)], out, mixed)
    assert [path.name for path in tmp_path.iterdir()] == ["node"]


@pytest.mark.parametrize("is_worker_directory_there", [False, True])
def test_results_in_a_directory_that_workers_do_not_share_are_none(
    spark: SparkSession, kafka_data: Path, elsewhere: Path, is_worker_directory_there: bool
) -> None:
    """The path means another directory to each process: with that of the worker there, all of its writing succeeds."""
    log, out = str(kafka_data / "dynamic-small/m1/log"), Path("/proc/self/cwd") / elsewhere.name
    if is_worker_directory_there:
        elsewhere.with_name(f"{elsewhere.name}.writing").mkdir()
    sentence = rf"{out}\.writing: .*; give a directory that the driver and all workers see, as on a shared file system$"

    for job in (
        lambda: make_history(spark, [log], out, HistoryOptions()),
        lambda: replay(spark, [log], out, ReplayOptions()),
    ):
        with pytest.raises((NotShared, PythonException)) as raised:
            job()
        found = raised.value if isinstance(raised.value, NotShared) else translated(raised.value)
        assert re.match(sentence, str(found))
        assert not list(Path.cwd().iterdir())
    written = list(elsewhere.parent.glob(f"{elsewhere.name}.writing/**/*.parquet"))
    assert bool(written) == is_worker_directory_there


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A name in the workers' own current directory, which from now on is not this process's."""
    working = spark.sparkContext.parallelize([0], 1).map(lambda _: os.getcwd()).first()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    name = Path(working) / f"unshared-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    shutil.rmtree(f"{name}.writing", ignore_errors=True)


def test_damage_is_named_and_no_table_is_left(spark: SparkSession, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    making.make_history(making.GenerationPlan(1000, 5), log, lambda _: None)
    (segment,) = log.rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    with pytest.raises(WorkerError, match=rf"^{segment}: damaged at byte \d+, offset \d+: "):
        make_history(spark, [str(log)], out, SMALL)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_clusters_that_fail_do_not_take_the_others_along(spark: SparkSession, tmp_path: Path) -> None:
    """One is damaged, one refused by what it says, one not there, one without its head; the others are as if alone.

    So it is with the incidents, where another is damaged since the tables were made.
    """
    damaged, impossible, headless, later, good = (
        LogWriter(tmp_path / name, name) for name in ("damaged", "impossible", "headless", "later", "good")
    )
    topic = (17).to_bytes(16)
    made = [TopicRecord("t", topic), *(PartitionRecord(one, topic, (1,), (1,), leader=1) for one in range(9))]
    for log in (damaged, impossible, headless, later, good):
        log.append(made)
        log.append([PartitionChangeRecord(3, topic, leader=-1)])
    damage(damaged)
    impossible.append([PartitionChangeRecord(1, (18).to_bytes(16), leader=2)])
    headless.segment.rename(headless.directory / segment_name(100))
    paths = [str(tmp_path / name) for name in ("damaged", "impossible", "nothing", "headless", "later", "good")]

    report = make_history(spark, paths, tmp_path / "out", replace(SMALL, mixed=True))
    alone = make_history(spark, paths[-2:], tmp_path / "alone", replace(SMALL, mixed=True))

    assert {name: " ".join(text.split()) for name, text in report.failed.items()}.keys() == {
        "damaged", "impossible", str(tmp_path / "nothing"), "headless",
    }  # fmt: skip
    assert re.match(rf"{damaged.segment}: damaged at byte \d+, offset \d+: the CRC", report.failed["damaged"])
    assert report.failed["impossible"].startswith("offset 11")
    assert "the log begins at offset 100" in report.failed["headless"]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["failed"] == report.failed
    assert report.clusters == alone.clusters
    for name in TABLES:
        tables = [ds.dataset(tmp_path / out / name, partitioning="hive").to_table() for out in ("out", "alone")]
        assert same_rows(*tables)
    with pytest.raises(QuorateError, match=r"damaged at byte|no such file"):
        make_history(spark, [paths[0], paths[2]], tmp_path / "none", replace(SMALL, mixed=True))
    assert not (tmp_path / "none").exists()

    damage(later)
    with find_incidents(spark, tmp_path / "out", paths, Thresholds(), mixed=True) as found:
        assert [span.cluster_id for span in found.search.findings.spans] == ["good"]
        assert {one.cluster_id for one in found.incidents} == {"good"}
        assert found.failed.keys() == {*report.failed, "later"}
        assert re.match(rf"{later.segment}: damaged at byte \d+, offset \d+: the CRC", found.failed["later"])
    alone_again = find_incidents(spark, tmp_path / "out", [paths[4]], Thresholds(), cluster_id="later")
    with pytest.raises(WorkerError, match=rf"^{later.segment}: damaged at byte"), alone_again:
        pass


def damage(log: LogWriter) -> None:
    """Change a byte in the midst of the log."""
    data = bytearray(log.segment.read_bytes())
    data[len(data) // 2] ^= 1
    log.segment.write_bytes(data)


def test_tables_in_a_store_are_those_of_a_disk(
    spark: SparkSession, kafka_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the log to the incidents nothing is on a disk: each process has its own connections to the store."""
    log = kafka_data / "dynamic-small/m1/log"
    with object_store() as store:
        for path in (path for path in log.rglob("*") if path.is_file()):
            store.objects[f"b/log/{path.relative_to(log)}"] = path.read_bytes()
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        forget_stores()
        there = make_history(spark, ["s3://b/log"], "s3://b/tables", HistoryOptions())
        replay(spark, ["s3://b/log"], "s3://b/state", ReplayOptions(at=40))
        state = replay(spark, ["s3://b/log"], "s3://b/later", ReplayOptions(base="s3://b/state"))
        with find_incidents(spark, "s3://b/tables", ["s3://b/log"], Thresholds()) as found:
            write_tables(found, "s3://b/incidents")
        page = replay_page(spark, "s3://b/later", state).render()
        plans = [capacity(spark, [], Wishes(), tables=f"s3a://b/{name}").summary for name in ("tables", "later")]
        sides = (RequestedSide("s3://b/tables", ComparedMoment(40)), RequestedSide("s3://b/state", ComparedMoment()))
        differing = compare(spark, *sides, match_ids=True, limit=9)
        forget_stores()
        for name, data in ((name, data) for name, data in store.objects.items() if name[-1] != "/"):
            target = tmp_path / "there" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    here = make_history(spark, [str(log)], tmp_path / "here", HistoryOptions())
    assert there.clusters == here.clusters
    for name in TABLES:
        places = (tmp_path / "there/b/tables" / name, tmp_path / "here" / name)
        assert same_rows(*(ds.dataset(place, partitioning="hive").to_table() for place in places))
    assert json.loads((tmp_path / "there/b/tables/manifest.json").read_text()) == there.as_json()
    assert state.digest == digest_image(load_image(log)).text
    assert ds.dataset(tmp_path / "there/b/incidents/incidents").count_rows() == len(found.incidents) > 0
    assert not list((tmp_path / "there").rglob("_writing"))
    assert "Replicas and leaders" in page
    assert [one.partitions for one in plans] == [8, 8]
    assert differing.is_equal
    assert sum(kind.rows_a for kind in differing.kinds)
