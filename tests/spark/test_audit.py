"""Audits of captured Kafka clusters: they pass as they are, and say what differs first where something was changed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from pyspark.sql import SparkSession

from quorate.metadata_log.batches.batch import data_batch, iter_records, place_batch
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo, manifest_name
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest, encode_manifest
from quorate.metadata_log.directory.reader import classify, iter_batches
from quorate.metadata_log.records.records import PartitionRecord
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.pipeline.certificate import sealed
from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.inputs import InputError
from quorate.pipeline.files.storage import forget_stores
from quorate.pipeline.jobs.audit import AuditOptions, audit
from quorate.pipeline.jobs.audit_page import audit_page
from quorate.pipeline.jobs.fleet_audit import audit_all
from quorate.scripts.cli.pipeline_jobs.controllers_replay import controllers_replay
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.object_store import object_store
from tests.pipeline_logs import KAFKA_LOG, LogWriter

LOG = "__cluster_metadata-0"
SMALL_CLUSTER = "xnVrj2ZpTPOxSQQa-ebb-g"


@pytest.fixture
def small(kafka_data: Path, tmp_path: Path) -> Path:
    """A copy of a small cluster's directory."""
    return Path(shutil.copytree(kafka_data / "dynamic-small/m1/log", tmp_path / "log"))


def rewritten(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the records of a file, its batches' frames staying as they are."""
    data = b""
    for batch in iter_batches(classify(path)):
        if batch.header.is_control:
            data += batch.data
            continue
        records = [(change(one.record), one.version) for one in iter_records(batch.data)]
        made = data_batch(records, batch.header.timestamp)
        data += place_batch(made, batch.header.base_offset, batch.header.epoch)
    path.write_bytes(data)


@pytest.mark.parametrize("moment", ["static/m3", "static/m4", "dynamic-small/m1"])
def test_captured_directory_passes(spark: SparkSession, kafka_data: Path, moment: str) -> None:
    directory = kafka_data / moment / "log"
    result = audit(spark, [str(directory)], AuditOptions(task_bytes=200_000, replay=controllers_replay))

    assert result.passed, result.document()
    assert result.use.processor_seconds.keys() == {"read", "fold", "share", "compose", "hash"}
    assert {one.source for one in result.comparisons} == {"replay", *(["checkpoint"] if moment != "static/m4" else [])}
    assert result.counts.records == result.counts.end_offset - result.counts.first_offset
    assert {Path(file["name"]).name for file in result.files} <= {file.name for file in (directory / LOG).iterdir()}


def test_changed_checkpoint_fails_and_names_what_differs_first(spark: SparkSession, small: Path) -> None:
    checkpoint = sorted((small / LOG).glob("*.checkpoint"))[1]

    def change(record: Any) -> Any:
        is_meant = isinstance(record, PartitionRecord) and record.partition_id == 1 and len(record.isr) > 1
        return replace(record, isr=record.isr[:1]) if is_meant else record

    rewritten(checkpoint, change)
    result = audit(spark, [str(small)], AuditOptions())

    assert not result.passed
    assert [one.holds for one in result.comparisons if one.name == str(checkpoint)] == [False]
    page = audit_page(result, sealed(result.document(), None)).render()
    assert "failed" in page
    assert "NOT THE SAME" in page
    assert result.problems[0].problem.split(";")[0][:20] in page
    (problem,) = result.problems
    assert (problem.topic, problem.partition) == ("ants", 1)
    assert 29 <= problem.offset < 42  # the partition's record
    assert "isr is [" in problem.problem


def test_replay_that_comes_to_another_state_fails_and_names_what_differs(spark: SparkSession, small: Path) -> None:
    """The other replay is given a log in which one ISR is another."""
    for checkpoint in sorted((small / LOG).glob("*.checkpoint"))[1:]:
        checkpoint.unlink()
    other = Path(shutil.copytree(small, small.parent / "other"))

    def change(record: Any) -> Any:
        is_meant = isinstance(record, PartitionRecord) and record.partition_id == 1 and len(record.isr) > 1
        return replace(record, isr=record.isr[:1]) if is_meant else record

    rewritten(next((other / LOG).glob("*.log")), change)
    options = AuditOptions(at=45, replay=lambda path, offset: controllers_replay(str(other), offset))
    result = audit(spark, [str(small)], options)

    assert [(one.source, one.holds) for one in result.comparisons] == [("replay", False)]
    (problem,) = result.problems
    assert (problem.topic, problem.partition) == ("ants", 1)
    assert f"replay {small}" in problem.problem


def test_wrong_manifest_fails(spark: SparkSession, small: Path) -> None:
    checkpoint = sorted((small / LOG).glob("*.checkpoint"))[1]
    data = checkpoint.read_bytes()
    info = CheckpointInfo(CheckpointId(42, 1), len(data), 0, crc32c(data))
    manifest = encode_manifest(CheckpointManifest({}, b"\7" * 32), info)
    (small / LOG / manifest_name(info.id)).write_bytes(manifest)

    result = audit(spark, [str(small)], AuditOptions())

    assert not result.passed
    assert [(one.source, one.holds) for one in result.comparisons if one.offset == 42] == [
        ("manifest", False),
        ("checkpoint", True),
    ]


def test_digests_that_were_given_are_compared_at_their_offsets(spark: SparkSession, small: Path) -> None:
    """Instead of the controllers' replay."""
    expected = {offset: digest_image(load_image(small, offset)).text for offset in (20, 55)}
    result = audit(spark, [str(small)], AuditOptions(digests=expected, replay=controllers_replay))

    assert result.passed, result.document()
    assert [(one.source, one.offset) for one in result.comparisons if one.source != "checkpoint"] == [
        ("given", 20),
        ("given", 55),
    ]
    wrong = audit(spark, [str(small)], AuditOptions(digests={**expected, 55: "0" * 64}))
    assert not wrong.passed
    assert [(one.offset, one.found) for one in wrong.comparisons if not one.holds] == [(55, expected[55])]


def test_digest_of_an_offset_that_is_not_audited_is_refused(spark: SparkSession, small: Path) -> None:
    digests = {10_000: "0" * 64}
    with pytest.raises(BadSetting, match="a digest was given for offset 10000; the audit is of 1 to 50"):
        audit(spark, [str(small)], AuditOptions(at=50, digests=digests))
    with pytest.raises(BadSetting, match="a digest was given for offset 10000; the audit is of 1 to 7"):
        audit(spark, [str(small)], AuditOptions(digests=digests))


def test_record_that_cannot_be_is_named_with_its_offset(spark: SparkSession, small: Path) -> None:
    segment = next((small / LOG).glob("*.log"))
    for checkpoint in sorted((small / LOG).glob("*.checkpoint"))[1:]:
        checkpoint.unlink()

    def change(record: Any) -> Any:
        return replace(record, partition_id=77) if type(record).__name__ == "PartitionChangeRecord" else record

    rewritten(segment, change)
    result = audit(spark, [str(small)], AuditOptions())

    assert (result.passed, result.digest) == (False, None)
    assert result.problems[0].offset == 62
    assert "there is no partition" in result.problems[0].problem


def test_log_in_a_store_is_audited_as_on_a_disk(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and workers share nothing but the store: its files come to each over its own connection."""
    environment = spark.sparkContext.environment
    with object_store() as store:
        for path in (path for path in KAFKA_LOG.rglob("*") if path.is_file()):
            store.objects[f"logs/m2/{path.relative_to(KAFKA_LOG)}"] = path.read_bytes()
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(environment, name, value)
        forget_stores()
        there = audit(spark, ["s3a://logs/m2"], AuditOptions())
        here = audit(spark, [str(KAFKA_LOG)], AuditOptions(digests={there.counts.end_offset: there.digest or ""}))
        forget_stores()

    assert there.passed
    assert here.passed
    assert there.digest == here.digest == digest_image(load_image(KAFKA_LOG)).text
    assert [file["sha256"] for file in there.files] == [file["sha256"] for file in here.files]
    assert {file["name"].partition("/m2/")[0] for file in there.files} == {"s3a://logs"}


def test_damaged_log_fails_with_a_certificate_of_its_files(spark: SparkSession, small: Path) -> None:
    """What an auditor files away says where the damage is, and of which bytes that is said."""
    (segment,) = (small / LOG).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    result = audit(spark, [str(small)], AuditOptions())

    assert not result.passed
    assert re.fullmatch(rf"{segment}: damaged at byte \d+, offset \d+: .*", result.problems[0].problem)
    assert f"offset {result.problems[0].offset}: " in result.problems[0].problem
    document = sealed(result.document(), None)
    assert (document["verdict"], document["state"]["digest"], document["comparisons"]) == ("failed", None, [])
    assert {file["name"]: file["sha256"] for file in document["files"]}[str(segment)] == sha256(data).hexdigest()
    assert "damaged at byte" in audit_page(result, document).render()


def test_audits_of_several_clusters_do_not_stop_each_other(spark: SparkSession, small: Path, tmp_path: Path) -> None:
    """One passes, one is damaged, of one nothing can be said, and one is not there."""
    damaged, alone = (LogWriter(tmp_path / name, name) for name in ("damaged", "alone"))
    for log in (damaged, alone):
        log.append_small(3)
    data = bytearray(damaged.segment.read_bytes())
    data[-5] ^= 1
    damaged.segment.write_bytes(data)
    alone.segment.rename(alone.directory / segment_name(100))

    fleet = audit_all(spark, [str(tmp_path / name) for name in ("alone", "nothing", "log", "damaged")], AuditOptions())

    by_cluster = {one.cluster_id: one for one in fleet.results}
    assert by_cluster.keys() == {"damaged", SMALL_CLUSTER}
    assert by_cluster[SMALL_CLUSTER].document() == audit(spark, [str(small)], AuditOptions()).document()
    assert by_cluster[SMALL_CLUSTER].passed
    assert not by_cluster["damaged"].passed
    assert by_cluster["damaged"].document()["problems"][0]["problem"].startswith(f"{damaged.segment}: damaged at byte")
    assert fleet.failed.keys() == {"alone", str(tmp_path / "nothing")}
    assert "the log begins at offset 100" in fleet.failed["alone"]
    assert not fleet.passed
    with pytest.raises(InputError, match="no such file or directory"):
        audit_all(spark, [str(tmp_path / "nothing")], AuditOptions())
