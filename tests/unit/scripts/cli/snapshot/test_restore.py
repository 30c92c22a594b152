"""`quorate snapshot restore`: the state of then and nothing behind it, above every epoch, all or nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME, MetadataDirectory
from quorate.metadata_log.directory.meta_properties import decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QuorumState, decode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.segments.mark import Mark, MarkFile
from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.cluster.making import Ports, controller_directory, make_twin
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.lost_majority.directory_survey import survey_directory
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image_digest import digest_image

STATIC, DYNAMIC = "static/m3/log", "dynamic-small/m1/log"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["restore", *map(str, arguments)], catch_exceptions=False)


def restored(source: Path, target: Path, *options: str) -> dict[str, Any]:
    result = run("--json", "--from", source, "--to", target, *options)
    assert result.exit_code == exit_codes.DONE, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def quorum_state(directory: Path) -> QuorumState:
    return decode_quorum_state((directory / "__cluster_metadata-0" / "quorum-state").read_bytes(), "")


@pytest.mark.parametrize(("moment", "offset", "last_epoch"), [(STATIC, 9000, 2), (DYNAMIC, 60, 2)])
def test_restored_cluster_holds_the_state_of_then_and_nothing_behind_it(
    kafka_data: Path, tmp_path: Path, moment: str, offset: int, last_epoch: int
) -> None:
    source = kafka_data / moment
    document = restored(source, tmp_path / "new", "--nodes", "3", "--at", str(offset))
    image = load_image(source, offset)
    assert (document["end_offset"], document["digest"]) == (offset, digest_image(image).text)
    assert document["left_out"]["records"] > 0
    plan = ClusterPlan.load(tmp_path / "new")
    assert plan is not None
    assert plan.cluster_id == document["cluster_id"] != document["source_cluster_id"]
    assert len(document["nodes"]) == 3
    for node in document["nodes"]:
        directory = Path(node["directory"])
        opened = MetadataDirectory.open(RealDisk(), str(directory), node["id"], plan.cluster_id)
        opened.close()
        assert load_image(directory) == image
        assert {path.suffix for path in (directory / "__cluster_metadata-0").iterdir()} == {
            "",
            ".checkpoint",
            ".manifest",
            ".metadata",
        }
        assert quorum_state(directory).leader_epoch == document["next_epoch"] == last_epoch + 1
        assert CliRunner().invoke(app, ["verify", str(directory)]).exit_code == exit_codes.DONE


def test_restored_state_is_that_of_any_moment(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / DYNAMIC
    for name, at in (("time", "2026-11-21T00:19:42.700Z"), ("epoch", "epoch:1")):
        document = restored(source, tmp_path / name, "--node-id", "7", "--at", at)
        image = load_image(source, parse_moment(at))
        assert 0 < image.provenance.end_offset < 77
        assert (document["end_offset"], document["digest"]) == (image.provenance.end_offset, digest_image(image).text)


def test_restored_directory_is_a_source_of_twins(kafka_data: Path, tmp_path: Path) -> None:
    """`scripts/up --from` of it starts from the same state."""
    document = restored(kafka_data / DYNAMIC, tmp_path / "new", "--node-id", "7", "--at", "60")
    plan = make_twin(tmp_path / "twin", tmp_path / "new", Ports.from_base(20_000), "none")
    assert (
        digest_image(load_image(tmp_path / "twin" / f"controller-{plan.controllers[0].id}")).text == document["digest"]
    )


def test_restored_node_of_the_source_s_cluster_has_no_vote_and_says_whom_it_replaces(
    kafka_data: Path, tmp_path: Path
) -> None:
    source = kafka_data / DYNAMIC
    settings_id = decode_meta_properties((source / "meta.properties").read_bytes(), "")
    for options in (["--cluster-id", "same"], ["--cluster-id", plan_id(source)]):
        target = tmp_path / options[1]
        document = restored(source, target, "--node-id", str(settings_id.node_id), *options)
        opened = MetadataDirectory.open(RealDisk(), str(target), settings_id.node_id)
        opened.close()
        assert (opened.meta.cluster_id, opened.meta.source_cluster_id) == (plan_id(source), None)
        assert not document["has_vote"]
        assert survey_directory(target).vote_epoch is None
        assert opened.meta.replaces == settings_id.directory_id != opened.meta.directory_id


def test_restored_node_of_another_cluster_votes(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / DYNAMIC
    document = restored(source, tmp_path / "other", "--node-id", "7", "--cluster-id", "EV-rfLMFR5qMVnUD5yfdVw")
    opened = MetadataDirectory.open(RealDisk(), str(tmp_path / "other"), 7)
    opened.close()
    assert (opened.meta.cluster_id, opened.meta.source_cluster_id) == ("EV-rfLMFR5qMVnUD5yfdVw", plan_id(source))
    assert document["has_vote"]
    assert survey_directory(tmp_path / "other").vote_epoch == document["next_epoch"]


def test_voters_of_the_source_s_cluster_are_made_only_for_who_insists_and_while_nobody_answers(
    kafka_data: Path, tmp_path: Path
) -> None:
    same = ("--from", kafka_data / DYNAMIC, "--to", tmp_path / "new", "--nodes", "3", "--cluster-id", "same")
    assert run(*same).exit_code == exit_codes.USAGE
    assert run(*same, "--with-vote").exit_code == exit_codes.USAGE
    with socket.create_server(("127.0.0.1", 0)) as mute:
        with pytest.raises(ClusterError, match="answers: while a controller of cluster"):
            run(*same, "--with-vote", "--controllers", f"127.0.0.1:{mute.getsockname()[1]}")
        assert list(tmp_path.iterdir()) == []
    assert run(*same, "--with-vote", "--controllers", f"127.0.0.1:{free_ports(1)[0]}").exit_code == exit_codes.DONE


def test_node_that_joins_begins_with_nothing_that_its_cluster_may_have_lost(kafka_data: Path, tmp_path: Path) -> None:
    plan = make_twin(tmp_path / "twin", kafka_data / DYNAMIC, Ports.from_base(20_000), "none")
    source = controller_directory(tmp_path / "twin", plan.controllers[0])
    log_path = str(source / LOG_DIRECTORY_NAME)
    end = load_image(source).provenance.end_offset
    epoch = load_image(source).provenance.epoch
    mark = MarkFile(RealDisk(), log_path)
    for _ in mark.create(Mark(end, epoch, 60)):
        pass
    mark.close()
    same = ("--node-id", "1", "--cluster-id", "same")
    assert restored(source, tmp_path / "new", *same)["end_offset"] == 60
    with pytest.raises(ClusterError, match="only what is before offset 60 to be committed"):
        run("--from", source, "--to", tmp_path / "other", *same, "--at", str(end))


def plan_id(source: Path) -> str:
    lines = (source / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))


def test_restored_node_with_static_voters_is_told_who_they_are(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / STATIC
    for wrong in ([], ["--voters", "1-3"], ["--voters", "seven"]):
        assert run("--from", source, "--to", tmp_path / "new", "--node-id", "7", *wrong).exit_code == exit_codes.USAGE
    restored(source, tmp_path / "new", "--node-id", "7", "--voters", "7-9")
    state = quorum_state(tmp_path / "new")
    assert (state.leader_epoch, state.data_version, state.current_voters) == (3, 0, (7, 8, 9))


def test_restore_from_before_the_first_feature_level_starts_afresh(kafka_data: Path, tmp_path: Path) -> None:
    restored(kafka_data / DYNAMIC, tmp_path / "new", "--node-id", "7", "--at", "2")
    assert load_image(tmp_path / "new").features.metadata_version == 0
    assert (tmp_path / "new" / "bootstrap.checkpoint").stat().st_size > 0


@pytest.mark.parametrize("wrong", [[], ["--nodes", "3", "--node-id", "1"], ["--nodes", "3", "--brokers", "some"]])
def test_restore_that_does_not_say_what_is_wanted_is_refused(
    kafka_data: Path, tmp_path: Path, wrong: list[str]
) -> None:
    assert run("--from", kafka_data / DYNAMIC, "--to", tmp_path / "new", *wrong).exit_code == exit_codes.USAGE
    assert list(tmp_path.iterdir()) == []


def test_restore_never_writes_over_a_directory_and_leaves_nothing_when_it_fails(
    kafka_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    for options in (("--nodes", "3"), ("--node-id", "7")):
        with pytest.raises(ClusterError, match="is there already"):
            run("--from", kafka_data / DYNAMIC, "--to", tmp_path / "there", *options)
        with pytest.raises(ImageNotAvailable):
            run("--from", kafka_data / DYNAMIC, "--to", tmp_path / "new", *options, "--at", "100000")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert list((tmp_path / "there").iterdir()) == []


def test_restore_counts_what_it_leaves_out_up_to_the_damage(kafka_data: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    data = bytearray((kafka_data / DYNAMIC / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes())
    data[-3] ^= 1
    (source / f"{0:020d}.log").write_bytes(data)
    left = restored(source, tmp_path / "new", "--node-id", "7", "--at", "60")["left_out"]
    assert left["records"] == left["end_offset"] - 60 > 0
    assert "the CRC does not match" in left["damage"]
