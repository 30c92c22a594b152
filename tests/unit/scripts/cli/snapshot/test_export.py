"""`quorate snapshot export`: Kafka's files and nothing else, the voters of choice, all or nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quorate.controller.operations.bootstrap import bootstrap_records
from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.directory.meta_properties import MetaProperties, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QuorumState, decode_quorum_state
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import VotersRecord
from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.cluster.kafka_export import ExportError
from quorate.scripts.cluster.plan import ClusterError
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage

VOTERS = ("--voter", "1@k1:9093", "--voter", "2@[::1]:9094:EV-rfLMFR5qMVnUD5yfdVw")
CLUSTER = "CGX0FmftRoq9tiEOLU7vAA"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)


def exported(source: Path, target: Path, *options: str) -> dict[str, Any]:
    result = run("--json", "--from", source, "--to", target, *VOTERS, *options)
    assert result.exit_code == exit_codes.DONE, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def without_kraft(image: MetadataImage) -> tuple[Any, ...]:
    return tuple(image._replace(kraft=image.kraft.__class__()))


def names(directory: Path) -> set[str]:
    return {path.name for path in (directory / "__cluster_metadata-0").iterdir()}


def test_export_makes_kafkas_files_and_no_others(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / "static/m2/log"
    document = exported(source, tmp_path / "kafka")
    assert {path.name for path in (tmp_path / "kafka").iterdir()} == {"controller-1", "controller-2"}
    for voter in document["voters"]:
        directory = Path(voter["directory"])
        assert {path.name for path in directory.iterdir()} == {
            ".lock",
            "__cluster_metadata-0",
            "bootstrap.checkpoint",
            "meta.properties",
        }
        assert names(directory) == {
            "00000000000000010996-0000000001.checkpoint",
            "partition.metadata",
            "quorum-state",
        }
        assert without_kraft(load_image(directory)) == without_kraft(load_image(source))


def test_export_says_who_votes_in_every_place(kafka_data: Path, tmp_path: Path) -> None:
    document = exported(kafka_data / "static/m2/log", tmp_path / "kafka")
    made, given = document["voters"]
    assert (given["id"], given["host"], given["directory_id"]) == (2, "::1", "EV-rfLMFR5qMVnUD5yfdVw")
    for voter in document["voters"]:
        directory = Path(voter["directory"])
        meta = decode_meta_properties((directory / "meta.properties").read_bytes(), "")
        assert (meta.cluster_id, meta.node_id, meta.source_cluster_id) == (CLUSTER, voter["id"], None)
        assert uuid_text(meta.directory_id) == voter["directory_id"]
        state = decode_quorum_state((directory / "__cluster_metadata-0" / "quorum-state").read_bytes(), "")
        assert state == QuorumState(document["next_epoch"])
        kraft = load_image(directory).kraft
        assert kraft.version == 1
        assert kraft.voters is not None
        said = [(one.voter_id, uuid_text(one.voter_directory_id), one.endpoints[0].port) for one in kraft.voters.voters]
        assert said == [(1, made["directory_id"], 9093), (2, given["directory_id"], 9094)]


def test_export_with_static_voters_leaves_them_to_the_settings(kafka_data: Path, tmp_path: Path) -> None:
    document = exported(kafka_data / "dynamic-small/m1/log", tmp_path / "kafka", "--static")
    directory = Path(document["voters"][0]["directory"])
    state = decode_quorum_state((directory / "__cluster_metadata-0" / "quorum-state").read_bytes(), "")
    assert (state.data_version, state.current_voters) == (0, (1, 2))
    assert (load_image(directory).kraft.version, load_image(directory).kraft.voters) == (0, None)


def test_export_starts_above_every_epoch_of_the_source(kafka_data: Path, tmp_path: Path) -> None:
    """Also where the state that is taken is older than the last epochs."""
    source = kafka_data / "static/m3/log"
    document = exported(source, tmp_path / "kafka", "--at", "194")
    last = max(batch.header.epoch for file in find_files(source) for batch in iter_batches(file))
    assert (document["epoch"], last, document["next_epoch"]) == (1, 2, 3)
    assert document["left_out"] == {"records": 18994 - 194, "end_offset": 18994, "checkpoints": 4, "damage": ""}
    assert document["end_offset"] == 194


def test_export_with_the_log_keeps_it_from_the_checkpoint_on(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / "static/m2/log"
    document = exported(source, tmp_path / "kafka", "--with-log", "--at", "9454")
    directory = Path(document["voters"][0]["directory"])
    assert names(directory) == {
        "00000000000000006907-0000000001.checkpoint",
        "00000000000000006907.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    }
    assert (directory / "__cluster_metadata-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n1 6907\n"
    assert document["checkpoint_offset"] == 6907
    for offset in (6907, 8000, 9454):
        assert without_kraft(load_image(directory, offset)) == without_kraft(load_image(source, offset))


def test_export_with_the_log_says_the_new_voters_in_it(kafka_data: Path, tmp_path: Path) -> None:
    """From offset 0 on: the log's own record of voters is one of the new voters, and all else is as it was."""
    source = tmp_path / "source"
    shutil.copytree(kafka_data / "dynamic-small/m1/log", source)
    for checkpoint in (source / "__cluster_metadata-0").glob("*.checkpoint"):
        checkpoint.unlink()
    document = exported(source, tmp_path / "kafka", "--with-log")
    directory = Path(document["voters"][0]["directory"])
    segment = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    logged = [one for batch in iter_batches(find_files(segment)[0]) for one in iter_records(batch.data)]
    assert [one.offset for one in logged] == list(range(77))
    voters = [one.record for one in logged if isinstance(one.record, VotersRecord)]
    assert [[voter.voter_id for voter in record.voters] for record in voters] == [[1, 2]]
    assert "00000000000000000000-0000000000.checkpoint" in names(directory)
    assert without_kraft(load_image(segment)) == without_kraft(load_image(source))
    with pytest.raises(ExportError, match="which static voters have not"):
        run("--from", source, "--to", tmp_path / "static", *VOTERS, "--with-log", "--static")
    assert not (tmp_path / "static").exists()


def test_export_has_the_features_of_the_state_in_its_bootstrap_file(kafka_data: Path, tmp_path: Path) -> None:
    document = exported(kafka_data / "static/m1/log", tmp_path / "kafka")
    data = (Path(document["voters"][0]["directory"]) / "bootstrap.checkpoint").read_bytes()
    levels = {one.record.name: one.record.feature_level for one in bootstrap_records(data, "")}  # type: ignore[union-attr]
    assert levels == {"metadata.version": 21}


def test_export_never_writes_over_a_directory(kafka_data: Path, tmp_path: Path) -> None:
    target = tmp_path / "kafka"
    target.mkdir()
    with pytest.raises(ClusterError, match="is there already"):
        run("--from", kafka_data / "static/m1/log", "--to", target, *VOTERS)
    assert list(target.iterdir()) == []


def test_export_that_fails_leaves_nothing(kafka_data: Path, tmp_path: Path) -> None:
    with pytest.raises(ImageNotAvailable):
        run("--from", kafka_data / "static/m4/log", "--to", tmp_path / "kafka", *VOTERS, "--at", "100")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("voter", ["1", "k1:9093", "1@k1", "1@k1:0", "1@k1:70000", "1@k1:9093:short", "-1@k1:9093"])
def test_export_to_a_voter_that_is_none_is_refused(kafka_data: Path, tmp_path: Path, voter: str) -> None:
    result = run("--from", kafka_data / "static/m1/log", "--to", tmp_path / "kafka", f"--voter={voter}")
    assert result.exit_code == exit_codes.USAGE
    assert not (tmp_path / "kafka").exists()


def test_export_to_one_voter_twice_is_refused(kafka_data: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="voter 1 is named twice"):
        run("--from", kafka_data / "static/m1/log", "--to", tmp_path / "k", *VOTERS, "--voter", "1@k3:9093")


def test_export_of_a_checkpoint_alone_needs_a_cluster_id(kafka_data: Path, tmp_path: Path) -> None:
    source = next((kafka_data / "static/m4/log/__cluster_metadata-0").glob("*.checkpoint"))
    refused = run("--from", source, "--to", tmp_path / "kafka", *VOTERS)
    assert refused.exit_code == exit_codes.USAGE
    document = exported(source, tmp_path / "kafka", "--cluster-id", CLUSTER)
    meta = decode_meta_properties((Path(document["voters"][0]["directory"]) / "meta.properties").read_bytes(), "")
    assert isinstance(meta, MetaProperties)
    assert meta.cluster_id == CLUSTER
