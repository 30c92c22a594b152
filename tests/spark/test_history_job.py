"""The history job: its tables against the controllers' own states, and what a failure leaves."""

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from pipeline.failures import translated
from pipeline.history.page import history_page
from pipeline.history.schema import TABLES
from pipeline.history.series import history_series
from pipeline.jobs.history import HistoryOptions, make_history
from scripts.history import making
from snapshots.loading import load_image
from tests.history_versions import require_no_gaps, require_state
from tests.pipeline_logs import BEHEADED_LOG

SMALL = HistoryOptions(range_bytes=100_000, bucket_bytes=100_000)


def test_tables_of_a_made_up_history_hold_its_states(spark: SparkSession, tmp_path: Path) -> None:
    """Several tasks and buckets, transactions, and the end inside one."""
    log, out = tmp_path / "log", tmp_path / "out"
    made = making.make_history(making.HistoryPlan(6000, 5, segments=3), log, lambda _: None)

    report = make_history(spark, [str(log)], out, SMALL)

    tables = {name: ds.dataset(out / name, partitioning="hive").to_table().to_pylist() for name in TABLES}
    assert (report.records, report.end_offset) == (6000, made.end_offset)
    assert {name: written.rows for name, written in report.tables.items()} == {
        name: len(rows) for name, rows in tables.items()
    }
    require_no_gaps(tables)
    for offset in (700, 2345, 4999, 6000):
        require_state(tables, load_image(log, offset), offset)
    by_spark = spark.read.parquet(str(out / "partition_versions"))
    assert by_spark.count() == len(tables["partition_versions"])
    assert by_spark.where("valid_to_offset is null").count() == made.operations.pool.held_count
    series = history_series(spark, out)
    assert {name: sum(counts) for name, counts in series.begun.items()} == {
        name: len(rows) for name, rows in tables.items()
    }
    assert series.held["partitions"][-1] == made.operations.pool.held_count
    assert len(series.days) == (series.days[-1] - series.days[0]).days + 1
    assert sum(one.versions for one in series.topics) <= len(tables["partition_versions"])
    page = history_page(report, series).render()
    assert "Topics that changed most" in page
    assert series.topics[0].topic in page


def test_history_of_a_log_without_its_head_begins_at_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    report = make_history(spark, [str(BEHEADED_LOG)], tmp_path / "out", SMALL)

    assert (report.first_offset, report.end_offset) == (15_719, 21_247)


def test_damage_is_named_and_no_table_is_left(spark: SparkSession, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    making.make_history(making.HistoryPlan(1000, 5), log, lambda _: None)
    (segment,) = log.rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    with pytest.raises(Exception, match="damaged") as caught:
        make_history(spark, [str(log)], out, SMALL)

    assert str(segment) in str(translated(caught.value))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]
