"""`quorate image diff` on files, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.logs.image import app
from quorate.scripts.terminal.programs.failures import Failed


def diff(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["diff", *map(str, arguments)])
    if isinstance(result.exception, Failed):
        return result.exception.code, result.stdout, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def log(kafka_data: Path) -> Path:
    return kafka_data / "static/m2/log"


def test_image_diff_of_one_state_says_that_it_is_the_same(log: Path) -> None:
    code, out, _ = diff(log, f"{log}@10996")

    assert (code, out.splitlines()[-1]) == (0, "The states are the same.")


def test_image_diff_of_two_offsets_counts_and_shows_what_differs(log: Path) -> None:
    code, out, _ = diff(f"{log}@194", log, "--limit", "1")

    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith(f"--- {log}@194: offset 194, epoch 1, 2026-")
    assert lines[1].startswith(f"+++ {log}: offset 10996, epoch 1, 2026-")
    start = lines.index("brokers: 2 changed (fenced 2)")
    assert lines[start + 1 : start + 3] == [
        "  ~ 13: fenced false -> true",
        "  ... and 1 more: --limit shows more",
    ]
    assert (
        "partitions: 3,030 added, 29 changed "
        "(leader 18, leader_epoch 18, partition_epoch 29, isr 29, elr 7, last_known_elr 3)"
    ) in lines
    assert (
        "  ~ __consumer_offsets-0: "
        "leader 14 -> 11, isr [11,12,14] -> [11,12], leader_epoch 0 -> 1, partition_epoch 3 -> 4"
    ) in lines


def test_image_diff_backwards_swaps_what_is_added_and_removed(log: Path) -> None:
    parts = json.loads(diff(f"{log}@194", log, "--json")[1])["parts"]
    swapped = json.loads(diff(log, f"{log}@194", "--json")[1])["parts"]

    for name, part in parts.items():
        counts = (part["added"], part["removed"], part["changed"], part["fields"])
        other = swapped[name]
        assert counts == (other["removed"], other["added"], other["changed"], other["fields"]), name


def test_image_diff_json_has_every_part_and_as_many_entries_as_wanted(log: Path) -> None:
    code, out, _ = diff(f"{log}@194", f"{log}@200", "--json", "--limit", "2")

    document = json.loads(out)
    assert (code, document["same"], document["matched_by_name"]) == (1, False, False)
    assert (document["old"]["state_offset"], document["new"]["state_offset"]) == (194, 200)
    assert [name for name, part in document["parts"].items() if part["entries"]] == ["features", "topics", "partitions"]
    assert len(document["parts"]) == 13
    partitions = document["parts"]["partitions"]
    assert (partitions["added"], len(partitions["entries"])) == (4, 2)
    assert partitions["entries"][0]["fields"]["replicas"] == {"old": None, "new": [14, 13]}


def test_image_diff_of_what_cannot_be_read_is_no_difference(log: Path, tmp_path: Path) -> None:
    for wrong, says in (
        (f"{log}@99999", "the log ends at offset 10996, before 99999"),
        (f"{log}@x", "'x' is no moment"),
        (str(tmp_path), "holds no segment"),
    ):
        code, out, err = diff(log, wrong)
        assert (code, out) == (2, "")
        assert says in err


def test_image_diff_takes_a_file_with_an_at_sign_in_its_name(log: Path, tmp_path: Path) -> None:
    odd = tmp_path / "copy@7"
    odd.symlink_to(log)

    assert diff(odd, f"{odd}@10996")[0] == 0
