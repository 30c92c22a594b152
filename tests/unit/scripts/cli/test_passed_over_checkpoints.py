"""Every command that reads a directory goes on where its newest checkpoint is damaged, and says what it passed over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cluster.making import Ports, make_twin
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image_digest import digest_image

NEWEST: Final = "00000000000000010993-0000000001.checkpoint"
VOTER: Final = ("--voter", "1@127.0.0.1:9093")


def quorate(*arguments: str | Path) -> Result:
    words = list(map(str, arguments))
    return CliRunner().invoke(make_app(words), words, catch_exceptions=False)


@pytest.fixture
def whole(kafka_data: Path) -> Path:
    """A captured directory with checkpoints of 2781, 6907 and 10993, and the log from offset 0 on."""
    return kafka_data / "static/m2/log"


@pytest.fixture(params=["flipped", "cut"])
def damaged(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> Path:
    """The same with one bit flipped in the middle of the newest checkpoint, or cut there."""
    copy = shutil.copytree(whole, tmp_path / "log")
    path = copy / "__cluster_metadata-0" / NEWEST
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data if request.param == "flipped" else data[: len(data) // 2])
    return copy


def require_told(result: Result, damaged: Path) -> None:
    assert result.exit_code == exit_codes.DONE, result.output
    (said,) = [line for line in result.stderr.splitlines() if "passed over" in line]
    assert said.startswith(f"quorate: {damaged / '__cluster_metadata-0' / NEWEST}: passed over, it is damaged at byte ")


def require_document(documents: list[dict[str, Any]], damaged: Path) -> None:
    (one,) = documents
    assert one["path"] == str(damaged / "__cluster_metadata-0" / NEWEST)
    assert one["end_offset"] == 10993
    assert 0 < one["position"] <= (damaged / "__cluster_metadata-0" / NEWEST).stat().st_size
    assert one["reason"]


def test_image_show_goes_on_from_the_older_checkpoint(whole: Path, damaged: Path) -> None:
    shown = quorate("image", "show", "--from", damaged, "--json")
    require_told(shown, damaged)
    document = json.loads(shown.stdout)
    assert document["digest"] == digest_image(load_image(whole)).text
    require_document(document["passed_over"], damaged)
    assert json.loads(quorate("image", "show", "--from", whole, "--json").stdout)["passed_over"] == []


def test_snapshot_show_shows_the_newest_whole_one(damaged: Path) -> None:
    shown = quorate("snapshot", "show", damaged, "--json")
    require_told(shown, damaged)
    document = json.loads(shown.stdout)
    assert document["digest"] == digest_image(load_image(damaged, 6907)).text
    require_document(document["passed_over"], damaged)


def test_snapshot_restore_takes_the_same_state_as_from_a_whole_directory(
    whole: Path, damaged: Path, tmp_path: Path
) -> None:
    restored = quorate("snapshot", "restore", "--from", damaged, "--nodes", "1", "--to", tmp_path / "new", "--json")
    require_told(restored, damaged)
    document = json.loads(restored.stdout)
    assert document["digest"] == digest_image(load_image(whole)).text
    require_document(document["passed_over"], damaged)


@pytest.mark.parametrize("log", [(), ("--with-log",)])
def test_snapshot_export_begins_with_a_whole_checkpoint(
    whole: Path, damaged: Path, tmp_path: Path, log: tuple[str, ...]
) -> None:
    made = quorate(
        "snapshot", "export", "--from", damaged, "--to", tmp_path / "kafka", *VOTER, *log, "--static", "--json"
    )
    require_told(made, damaged)
    document = json.loads(made.stdout)
    require_document(document["passed_over"], damaged)
    assert document["checkpoint_offset"] == (6907 if log else load_image(whole).provenance.end_offset)
    assert load_image(tmp_path / "kafka" / "controller-1").topics == load_image(whole).topics


def test_two_states_are_compared(whole: Path, damaged: Path) -> None:
    compared = quorate("image", "diff", whole, damaged, "--json")
    require_told(compared, damaged)
    document = json.loads(compared.stdout)
    assert (document["same"], document["old"]["passed_over"]) == (True, [])
    require_document(document["new"]["passed_over"], damaged)


def test_questions_are_answered_from_it(whole: Path, damaged: Path) -> None:
    answered = quorate("topics", "list", "--from", damaged, "--json")
    require_told(answered, damaged)
    assert answered.stdout == quorate("topics", "list", "--from", whole, "--json").stdout


def test_twin_starts_from_it_without_the_damaged_file(whole: Path, damaged: Path, tmp_path: Path) -> None:
    told: list[PassedOver] = []
    plan = make_twin(tmp_path / "twin", damaged, Ports.from_base(20_000), "none", told.append)
    assert [one.end_offset for one in told] == [10993]
    for controller in plan.controllers:
        made = tmp_path / "twin" / f"controller-{controller.id}"
        assert load_image(made, tell=told.append) == load_image(whole)
        assert not (made / "__cluster_metadata-0" / NEWEST).exists()
    assert len(told) == 1


def test_history_of_a_log_that_begins_later_begins_with_a_whole_one(damaged: Path) -> None:
    """The log begins where the oldest checkpoint ended, which is cut: nothing before the next one can be told."""
    log = damaged / "__cluster_metadata-0"
    (log / NEWEST).unlink()
    for base in (0, 1758):
        (log / f"{base:020d}.log").unlink()
    path = log / "00000000000000003849-0000000001.checkpoint"
    path.write_bytes((log / "00000000000000006907-0000000001.checkpoint").read_bytes()[:-1])
    told = quorate("history", "--from", damaged, "--json", "--limit", "100000")
    assert told.exit_code == exit_codes.DONE
    assert f"quorate: {path}: passed over, it is damaged at byte " in told.stderr
    assert min(json.loads(line)["base_offset"] for line in told.stdout.splitlines()) >= 6907
