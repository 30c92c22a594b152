"""States as tables: of captured Kafka clusters at any moment, from a checkpoint, from earlier tables, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from quorate.controller.configs.resources import SHOWN_NAMES
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.ids import uuid_text
from quorate.pipeline.comparing.rows import ComparedMoment
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.jobs.compare import compare
from quorate.pipeline.jobs.compared_sides import RequestedSide
from quorate.pipeline.jobs.replay import ReplayOptions, replay
from quorate.pipeline.jobs.replay_page import replay_page
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.secret_records import SECRETS, write_secret_records


def test_state_of_captured_cluster_and_the_next_one_from_it(
    spark: SparkSession, kafka_data: Path, tmp_path: Path
) -> None:
    directory = kafka_data / "static/m3/log"
    first = replay(spark, [str(directory)], tmp_path / "first", ReplayOptions(at=9500, task_bytes=100_000))
    later = replay(spark, [str(directory)], tmp_path / "later", ReplayOptions(base=tmp_path / "first"))
    image = load_image(directory)

    assert first.digest == digest_image(load_image(directory, 9500)).text
    assert (first.base_offset, first.records) == (6907, 9500 - 6907)
    assert later.digest == digest_image(image).text
    assert (later.base_offset, later.records) == (9500, later.offset - 9500)
    rows = pq.read_table(tmp_path / "later" / "partitions").to_pylist()
    assert len(rows) == later.rows["partitions"] == len(image.partitions)
    for row in rows[::97]:
        topic = image.topics.by_name[row["topic"]]
        partition = dict(image.partitions.partitions_of(topic.id))[row["partition"]]
        assert row["topic_id"] == uuid_text(topic.id)
        assert (row["isr"], row["replicas"]) == (list(partition.isr), list(partition.replicas))
        assert (row["leader"], row["leader_epoch"]) == (partition.leader, partition.leader_epoch)
        assert row["directories"] == [uuid_text(uuid) for uuid in partition.directories]
    page = replay_page(spark, tmp_path / "later", later).render()
    assert later.digest in page
    assert max(image.topics.by_name) in page or later.rows["topics"] > 200
    brokers = pq.read_table(tmp_path / "later" / "brokers").to_pylist()
    assert {row["broker_id"]: row["fenced"] for row in brokers} == {
        number: broker.is_fenced for number, broker in image.cluster.brokers.items()
    }


def test_state_at_a_time_is_that_before_the_first_later_batch(
    spark: SparkSession, kafka_data: Path, tmp_path: Path
) -> None:
    directory = kafka_data / "dynamic-small/m1/log"
    time = load_image(directory, 50).provenance.log_time_ms
    result = replay(spark, [str(directory)], tmp_path / "out", ReplayOptions(time=time))

    assert 50 <= result.offset < 77
    assert result.digest == digest_image(load_image(directory, result.offset)).text


def test_what_cannot_be_replayed_leaves_no_tables(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    directory, out = str(kafka_data / "dynamic-small/m1/log"), tmp_path / "out"
    with pytest.raises(PipelineError, match="the log ends at offset 77, before 1000"):
        replay(spark, [directory], out, ReplayOptions(at=1000))
    with pytest.raises(PipelineError, match="holds no tables of a state"):
        replay(spark, [directory], out, ReplayOptions(base=tmp_path))
    with pytest.raises(StorageError, match="no such file or directory"):
        replay(spark, [str(tmp_path / "nothing")], out, ReplayOptions())
    with pytest.raises(StorageError, match="the log begins at offset 12538"):
        replay(spark, [str(kafka_data / "static/m4/log")], out, ReplayOptions(at=100))
    assert not list(tmp_path.iterdir())
    out.mkdir()
    (out / "something").touch()
    with pytest.raises(StorageError, match="holds something already"):
        replay(spark, [directory], out, ReplayOptions())


def test_tables_without_secrets_have_the_digest_of_the_state_and_are_no_base(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    log = write_secret_records(tmp_path / "log")
    out = tmp_path / "out"
    result = replay(spark, [str(log)], out, ReplayOptions(cluster_id="c", is_secret=SHOWN_NAMES))

    assert result.digest == digest_image(load_image(log)).text
    rows = [pq.read_table(out / name).to_pylist() for name in ("configs", "entries")]
    assert "(hidden)" in str(rows)
    assert not [secret for secret in SECRETS if secret in str(rows)]
    with pytest.raises(PipelineError, match=r"secrets are hidden in these tables.*--show-secrets"):
        replay(spark, [str(log)], tmp_path / "later", ReplayOptions(cluster_id="c", base=out))
    sides = (RequestedSide(str(log), ComparedMoment(), "c"), RequestedSide(str(out), ComparedMoment()))
    assert compare(spark, *sides, match_ids=False, limit=9, is_secret=SHOWN_NAMES).is_equal
