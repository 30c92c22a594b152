"""`quorate snapshot` on files: list, verify, show, as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quorate.controller.background.checkpoint_writer import manifest_of
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, check_checkpoint, manifest_name
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest, encode_manifest
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import StorageError
from quorate.scripts.benchmarks.large_cluster import write_checkpoint
from quorate.scripts.cli.logs import image
from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.unit.broker.images import cluster_image, fencing, partition, replayed

FIRST, SECOND, THIRD = (CheckpointId(offset, 1) for offset in (2781, 6907, 10993))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def succeed(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == exit_codes.DONE, result.output
    return result.stdout


@pytest.fixture
def log(kafka_data: Path, tmp_path: Path) -> Path:
    """A copy of a captured log with three checkpoints."""
    return shutil.copytree(kafka_data / "static/m2/log/__cluster_metadata-0", tmp_path / "log" / "__cluster_metadata-0")


def path_of(log: Path, checkpoint: CheckpointId) -> Path:
    return log / f"{checkpoint.end_offset:020d}-{checkpoint.epoch:010d}.checkpoint"


def add_manifest(log: Path, checkpoint: CheckpointId, digest: bytes | None = None) -> None:
    """The manifest that we would have written, or one that says another digest."""
    path = path_of(log, checkpoint)
    info = check_checkpoint(RealDisk(), str(path), checkpoint)
    manifest = manifest_of(digest_image(load_image(path)))
    told = CheckpointManifest(manifest.record_counts, digest or manifest.digest)
    (log / manifest_name(checkpoint)).write_bytes(encode_manifest(told, info))


def verdicts(*arguments: str | Path) -> list[dict[str, Any]]:
    """What `verify --json` says; its exit code must fit."""
    result = run("verify", "--json", *arguments)
    document = json.loads(result.stdout)
    is_sound = all(not one["findings"] for one in document["checkpoints"])
    assert document["is_sound"] is is_sound
    assert result.exit_code == (exit_codes.DONE if is_sound else exit_codes.REFUSED)
    found: list[dict[str, Any]] = document["checkpoints"]
    return found


# --- list --------------------------------------------------------------------------------------------


def test_snapshot_list_shows_the_checkpoints_of_a_directory(log: Path) -> None:
    add_manifest(log, SECOND)
    (log / manifest_name(THIRD)).write_bytes(b"no manifest")
    (listed,) = json.loads(succeed("list", "--json", "--from", log.parent))["places"]
    rows = [(one["end_offset"], one["manifest"]) for one in listed["checkpoints"]]
    assert rows == [(2781, "none"), (6907, "whole"), (10993, "damaged")]
    assert listed["checkpoints"][1]["digest"] == digest_image(load_image(path_of(log, SECOND))).text
    assert (listed["place"], listed["failure"], listed["node_id"], listed["damaged"]) == (str(log), "", None, [])
    text = succeed("list", "--from", log)
    assert text.splitlines()[0] == str(log)
    assert "END-OFFSET" in text


def test_snapshot_list_names_the_damaged_file(log: Path) -> None:
    path = path_of(log, SECOND)
    data = bytearray(path.read_bytes())
    data[1_000] ^= 1
    path.write_bytes(data)
    result = run("list", "--json", "--from", log)
    assert result.exit_code == exit_codes.REFUSED
    (listed,) = json.loads(result.stdout)["places"]
    assert [one["end_offset"] for one in listed["checkpoints"]] == [2781, 10993]
    assert f"{path}: not a usable checkpoint: byte " in listed["damaged"][0]
    assert str(path) in result.stderr


def test_snapshot_list_of_nothing_is_refused(tmp_path: Path) -> None:
    assert "no checkpoint" in succeed("list", "--from", tmp_path)
    with pytest.raises(StorageError, match="no such directory"):
        run("list", "--from", tmp_path / "missing")


# --- verify ------------------------------------------------------------------------------------------


def test_snapshot_verify_holds_content_manifest_and_log_together(log: Path) -> None:
    add_manifest(log, FIRST)
    found = verdicts(log.parent)
    assert [(one["end_offset"], one["manifest"], one["log"]) for one in found] == [
        (2781, "same", "same"),
        (6907, "none", "same"),
        (10993, "none", "same"),
    ]
    assert found[1]["digest"] == digest_image(load_image(path_of(log, SECOND))).text
    text = succeed("verify", log)
    assert text.count("log beside it: adds up to the same state") == text.count("  OK") == 3


def test_snapshot_verify_of_one_file_looks_at_the_log_beside_it(log: Path, tmp_path: Path) -> None:
    (found,) = verdicts(path_of(log, SECOND))
    assert (found["end_offset"], found["log"], found["notes"]) == (6907, "same", [])
    alone = tmp_path / path_of(log, SECOND).name
    shutil.copyfile(path_of(log, SECOND), alone)
    (found,) = verdicts(alone)
    assert (found["end_offset"], found["log"]) == (6907, "out-of-reach")
    assert "  log beside it: there is none\n" in succeed("verify", alone)
    later = max(log.glob("*.log"))
    shutil.copyfile(later, tmp_path / later.name)
    assert "  log beside it: does not reach it\n" in succeed("verify", alone)


def test_snapshot_verify_finds_every_flipped_byte(log: Path, tmp_path: Path) -> None:
    source = path_of(log, FIRST)
    path = tmp_path / source.name
    data = source.read_bytes()
    unseen = []
    for position in range(0, len(data), 2_003):
        changed = bytearray(data)
        changed[position] ^= 0x80
        path.write_bytes(changed)
        (found,) = verdicts(path)
        if not found["findings"] or str(path) not in found["findings"][0] or "byte " not in found["findings"][0]:
            unseen.append((position, found))
    assert unseen == []


def test_snapshot_verify_finds_a_file_that_was_cut(log: Path) -> None:
    path = path_of(log, SECOND)
    path.write_bytes(path.read_bytes()[:-7])
    first, second, third = verdicts(log)
    assert "damaged at byte" in second["findings"][0]
    assert "the batch is cut short" in second["findings"][0]
    assert first["findings"] == third["findings"] == []


def test_snapshot_verify_finds_the_manifest_of_another_state(log: Path) -> None:
    add_manifest(log, FIRST, digest=bytes([1]) * 32)
    found = verdicts(log)[0]
    assert found["manifest"] == "different"
    assert found["findings"][0].endswith(f"its manifest says {'01' * 32}")


def test_snapshot_verify_finds_a_manifest_of_other_bytes(log: Path) -> None:
    add_manifest(log, FIRST)
    shutil.copyfile(log / manifest_name(FIRST), log / manifest_name(SECOND))
    found = verdicts(log)
    assert [one["manifest"] for one in found] == ["same", "damaged", "none"]
    assert "the manifest is that of other bytes" in found[1]["findings"][0]


def test_snapshot_verify_finds_a_checkpoint_of_another_state(log: Path) -> None:
    shutil.copyfile(path_of(log, SECOND), path_of(log, FIRST))
    found = verdicts(log)
    assert [one["log"] for one in found] == ["different", "same", "same"]
    assert found[0]["findings"] == [f"{path_of(log, FIRST)}: its state is not that of the log at offset 2781"]


def test_snapshot_verify_finds_a_state_that_breaks_the_rules_of_every_state(tmp_path: Path) -> None:
    """Its bytes are whole; that its leaders are fenced, only the state tells. Ten are named, however many there are."""
    image = cluster_image([1, 2], [partition(0, number, [1, 2]) for number in range(12)])
    path = write_checkpoint(tmp_path, replayed(image, fencing(1, fenced=True)))
    (found,) = verdicts(path)
    assert len(found["findings"]) == 10
    assert found["findings"][0].startswith(f"{path}: topic-0-0: its leader is fenced: ")


def test_snapshot_verify_says_that_the_log_is_damaged_and_judges_the_checkpoint(log: Path) -> None:
    segment = log / "00000000000000003849.log"
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    found = verdicts(log)
    assert [(one["log"], bool(one["notes"])) for one in found] == [
        ("same", False),
        ("out-of-reach", True),
        ("out-of-reach", True),
    ]
    assert str(segment) in found[1]["notes"][0]


# --- show --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"], ["--records"]])
def test_snapshot_show_is_image_show_of_the_newest_checkpoint(log: Path, form: list[str]) -> None:
    newest = path_of(log, THIRD)
    shown = CliRunner().invoke(image.app, ["show", "--from", str(newest), *form], catch_exceptions=False)
    assert succeed("show", str(log.parent), *form) == succeed("show", newest, *form) == shown.stdout


@pytest.mark.parametrize("command", ["show", "verify"])
def test_directory_without_a_checkpoint_is_refused(kafka_data: Path, command: str) -> None:
    with pytest.raises(StorageError, match="holds no checkpoint"):
        run(command, kafka_data / "static/m1/log")
