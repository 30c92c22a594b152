"""`quorate log dump` and `log verify`, as a user calls them."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quorate.metadata_log.batches.batch import build_batch, data_batch, frame_record, parse_header, place_batch
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.scripts.cli.logs.log import app
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from tests.secret_records import SECRETS, write_secret_records

TIME = 1_700_000_000_000
TOPIC = bytes(range(16))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def succeed(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == exit_codes.DONE, result.output
    return result.stdout


def listed_files(capture: Path) -> list[str]:
    """The files whose records Kafka's dump tool has printed, in its order."""
    with gzip.open(capture / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["file"] for line in lines))


def write_log(directory: Path, *segments: list[Record], epoch: int = 1, times: tuple[int, ...] = ()) -> list[Path]:
    """A log of these segments; each record is a batch of its own. ``times``: of the batches, if not all are one."""
    paths = []
    offset = 0
    for records in segments:
        path = directory / f"{offset:020d}.log"
        with path.open("wb") as file:
            for record in records:
                file.write(place_batch(data_batch([(record, 0)], times[offset] if times else TIME), offset, epoch))
                offset += 1
        paths.append(path)
    return paths


def copy_of(kafka_data: Path, moment: str, target: Path) -> Path:
    """A captured directory that a test may damage."""
    shutil.copytree(kafka_data / moment / "log", target / "log")
    return target / "log" / "__cluster_metadata-0"


# --- dump --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["static", "dynamic-small"])
def test_log_dump_json_equals_what_kafkas_dump_tool_printed(
    kafka_data: Path, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_data / capture)  # the files are named from there
    printed = succeed("dump", "--json", "--show-secrets", *listed_files(Path())).splitlines()
    with gzip.open("records.jsonl.gz", "rt", encoding="utf-8") as lines:
        expected = [json.loads(line) for line in lines]

    assert len(printed) == len(expected)
    for line, row in zip(printed, expected, strict=True):
        assert json.loads(line) == row


@pytest.mark.parametrize("capture", ["static", "dynamic-small"])
def test_log_dump_text_shows_every_record_that_kafka_saw(
    kafka_data: Path, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_data / capture)
    lines = succeed("dump", "--show-secrets", *listed_files(Path())).splitlines()
    with gzip.open("records.jsonl.gz", "rt", encoding="utf-8") as rows:
        expected = [json.loads(row) for row in rows]

    records = [line.split(maxsplit=3) for line in lines if line.startswith("    ")]
    assert [(int(offset), name, version, json.loads(data)) for offset, name, version, data in records] == [
        (row["offset"], row["type"], f"v{row['version']}", row["data"]) for row in expected
    ]
    batches = [line for line in lines if line.startswith("  batch ")]
    assert len(batches) == len({(row["file"], row["batch"]["position"]) for row in expected})
    assert [line for line in lines if not line.startswith(" ")] == listed_files(Path())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_log_dump_hides_keys_and_configs_that_may_be_secrets(tmp_path: Path, form: tuple[str, ...]) -> None:
    write_secret_records(tmp_path)

    hidden, shown = succeed("dump", *form, tmp_path), succeed("dump", *form, "--show-secrets", tmp_path)

    assert all(secret in shown and secret not in hidden for secret in SECRETS)
    assert hidden.count('"(hidden)"') == 5
    assert '"name":"retention.ms","value":"1000"' in hidden


def test_log_dump_of_directory_shows_segments_then_checkpoints(kafka_data: Path) -> None:
    directory = kafka_data / "static/m2/log"
    files = [json.loads(line)["file"] for line in succeed("dump", "--json", directory).splitlines()]
    in_order = list(dict.fromkeys(files))

    inner = directory / "__cluster_metadata-0"
    assert in_order == [str(path) for pattern in ("*.log", "*.checkpoint") for path in sorted(inner.glob(pattern))]


def test_log_dump_text_tells_batch_place_and_time(tmp_path: Path) -> None:
    (path,) = write_log(tmp_path, [TopicRecord("ü", TOPIC)], epoch=4)
    size = path.stat().st_size

    assert succeed("dump", path).splitlines() == [
        str(path),
        f"  batch 0..0 (1 records, {size} bytes at 0) epoch 4 2023-11-14T22:13:20.000+00:00",
        '             0  TOPIC_RECORD v0 {"name":"ü","topicId":"AAECAwQFBgcICQoLDA0ODw"}',
    ]


def test_log_dump_reports_damage_and_goes_on_with_the_next_file(tmp_path: Path) -> None:
    first, _ = write_log(tmp_path, [NoOpRecord()] * 3, [TopicRecord("a", TOPIC)])
    data = bytearray(first.read_bytes())
    batch = len(data) // 3
    data[batch + 70] ^= 1
    first.write_bytes(data)
    result = run("dump", "--json", tmp_path)

    assert result.exit_code == exit_codes.REFUSED
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == [0, 3]
    assert result.stderr == f"quorate: {first}: damaged at byte {batch}, offset 1: the CRC does not match\n"


def test_log_dump_of_truncated_file_shows_what_is_whole(kafka_data: Path, tmp_path: Path) -> None:
    source = kafka_data / "dynamic-small/m1/log/__cluster_metadata-0/00000000000000000000.log"
    path = tmp_path / source.name
    data = source.read_bytes()
    path.write_bytes(data[:-5])
    result = run("dump", "--json", path)

    whole = [json.loads(line)["offset"] for line in result.stdout.splitlines()]
    last_batch = last_batch_at(data)
    offset = parse_header(data, last_batch).base_offset
    assert whole == list(range(offset))
    assert result.exit_code == exit_codes.REFUSED
    assert f"{path}: damaged at byte {last_batch}, offset {offset}: the batch is cut short" in result.stderr


def last_batch_at(data: bytes) -> int:
    position = last = 0
    while position < len(data):
        last = position
        position += parse_header(data, position).size
    return last


def test_log_dump_of_unknown_record_version_says_both_numbers_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(build_batch(frame_record(0, None, b"\x01\x14\x09\x00"), 1, TIME))
    result = run("dump", path)

    assert result.exit_code == exit_codes.REFUSED
    assert f"{path}: damaged at byte 0, offset 0: record type 20 version 9 is not supported" in result.stderr


def test_log_dump_of_file_that_is_no_log_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a log " * 20)
    result = run("dump", path)

    assert (result.exit_code, result.stdout) == (exit_codes.REFUSED, "")
    assert f"{path}: damaged at byte 0: batch magic is" in result.stderr


def test_log_dump_of_empty_file_shows_nothing(tmp_path: Path) -> None:
    (path,) = write_log(tmp_path, [])
    assert succeed("dump", path) == ""


@pytest.mark.parametrize("command", ["dump", "verify"])
def test_path_without_a_log_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(StorageError, match="holds no segment"):
        run(command, tmp_path)
    with pytest.raises(StorageError, match="no such file or directory"):
        run(command, tmp_path / "missing")


# --- verify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("static/m1", ["1 segment, 0 checkpoints, 59 batches, 194 records", "replayed to offset 194"]),
        ("static/m2", ["offsets 0 to 10995", "3 checkpoints compared with the log's own state"]),
        ("static/m3", ["offsets 0 to 18993", "4 checkpoints compared with the log's own state"]),
        ("static/m4", ["offsets 12538 to 21246", "offsets below 15719, the oldest checkpoint's, were read"]),
        ("dynamic-small/m1", ["1 segment, 3 checkpoints", "2 checkpoints compared with the log's own state"]),
    ],
)
def test_log_verify_of_captured_directory_finds_nothing(kafka_data: Path, moment: str, expected: list[str]) -> None:
    text = succeed("verify", kafka_data / moment / "log")

    for line in expected:
        assert line in text
    assert text.endswith("  OK\n")


def findings(path: Path) -> list[str]:
    """What verify says is wrong."""
    result = run("verify", path)
    wrong = [line.removeprefix("  wrong: ") for line in result.stdout.splitlines() if line.startswith("  wrong: ")]
    assert result.exit_code == (exit_codes.REFUSED if wrong else exit_codes.DONE)
    assert result.stdout.endswith(f"  DAMAGED: {len(wrong)} finding{'s' * (len(wrong) > 1)}\n" if wrong else "  OK\n")
    return wrong


def test_log_verify_names_the_record_that_breaks_replay(tmp_path: Path) -> None:
    change = PartitionChangeRecord(0, TOPIC, leader=1)
    first, second = write_log(tmp_path, [TopicRecord("a", TOPIC), NoOpRecord()], [NoOpRecord(), change, NoOpRecord()])
    position = len(data_batch([(NoOpRecord(), 0)], TIME))

    (finding,) = findings(tmp_path)
    assert finding.startswith(f"{second}: the record at offset 3 (batch at byte {position}) cannot be replayed: ")
    assert "no partition 0" in finding
    assert findings(first) == []


def test_log_verify_goes_on_reading_behind_the_record_that_breaks_replay(tmp_path: Path) -> None:
    change = PartitionChangeRecord(0, TOPIC, leader=1)
    (path,) = write_log(tmp_path, [change, NoOpRecord(), NoOpRecord()])
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)

    wrong = findings(tmp_path)
    assert "record at offset 0" in wrong[0]
    assert "offset 2: the CRC does not match" in wrong[1]


def test_log_verify_finds_a_missing_segment(kafka_data: Path, tmp_path: Path) -> None:
    directory = copy_of(kafka_data, "static/m2", tmp_path)
    missing = directory / "00000000000000003849.log"
    missing.unlink()
    wrong = findings(directory.parent)

    assert wrong == [f"{directory / '00000000000000006909.log'}: begins at offset 6909 where 3849 is due"]


def test_log_verify_finds_an_epoch_that_falls_between_segments(tmp_path: Path) -> None:
    write_log(tmp_path, [NoOpRecord()], epoch=5)
    later = tmp_path / f"{1:020d}.log"
    later.write_bytes(place_batch(data_batch([(NoOpRecord(), 0)], TIME), 1, 4))

    assert findings(tmp_path) == [f"{later}: damaged at byte 0, offset 1: epoch 4 after epoch 5"]


def test_log_verify_finds_a_log_that_begins_in_the_middle_without_checkpoint(kafka_data: Path, tmp_path: Path) -> None:
    directory = copy_of(kafka_data, "static/m4", tmp_path)
    for checkpoint in directory.glob("*.checkpoint"):
        checkpoint.unlink()

    assert [finding.partition(": ")[2] for finding in findings(directory)] == [
        "begins in the middle of history, and no checkpoint is there to replay it onto"
    ]
    assert findings(directory / "00000000000000016396.log") == []  # one file is not the whole log


def test_log_verify_finds_a_checkpoint_of_another_state(kafka_data: Path, tmp_path: Path) -> None:
    """Whole, with good CRCs, and wrong: only replay can tell."""
    directory = copy_of(kafka_data, "static/m2", tmp_path)
    source = directory / "00000000000000006907-0000000001.checkpoint"
    target = directory / "00000000000000002781-0000000001.checkpoint"
    target.write_bytes(source.read_bytes())

    assert findings(directory) == [f"{target}: its state is not that of the log at offset 2781"]


def test_log_verify_finds_a_checkpoint_that_is_not_whole(kafka_data: Path, tmp_path: Path) -> None:
    directory = copy_of(kafka_data, "static/m2", tmp_path)
    path = directory / "00000000000000006907-0000000001.checkpoint"
    data = path.read_bytes()
    whole = data[: last_batch_at(data)]
    path.write_bytes(whole)
    last = last_batch_at(whole)
    place = f"(batch at byte {last}, offset {parse_header(whole, last).base_offset})"

    assert findings(directory) == [f"{path}: not a usable checkpoint: no SnapshotFooter at the end {place}"]


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_log_verify_names_the_batch_of_a_checkpoint_that_cannot_be_replayed(tmp_path: Path, damaged: int) -> None:
    """Also where the one behind it was read before."""
    path = tmp_path / "00000000000000000007-0000000001.checkpoint"
    head, foot = checkpoint_batches(EMPTY_IMAGE._replace(provenance=Provenance(6, 1, 5)), 9)
    records = [RemoveTopicRecord(b"none".ljust(16)) if at == damaged else NoOpRecord() for at in (1, 2, 3)]
    batches = [head, *(data_batch([(record, 0)], 9) for record in records), foot]
    placed = [place_batch(batch, at, 1) for at, batch in enumerate(batches)]
    path.write_bytes(b"".join(placed))
    (finding,) = findings(path)
    assert finding.endswith(f" (batch at byte {sum(map(len, placed[:damaged]))}, offset {damaged})")


def test_log_verify_finds_a_checkpoint_of_another_epoch(kafka_data: Path, tmp_path: Path) -> None:
    directory = copy_of(kafka_data, "static/m2", tmp_path)
    path = directory / "00000000000000006907-0000000001.checkpoint"
    renamed = path.rename(directory / "00000000000000006907-0000000009.checkpoint")

    assert findings(directory) == [f"{renamed}: damaged at byte 0, offset 0: epoch 1 in a checkpoint of epoch 9"]


def test_log_verify_finds_every_flipped_byte(kafka_data: Path, tmp_path: Path) -> None:
    """Header bytes that no CRC covers, too: continuity tells."""
    source = kafka_data / "dynamic-small/m1/log/__cluster_metadata-0/00000000000000000000.log"
    path = tmp_path / source.name
    data = source.read_bytes()
    unseen = []
    for position in range(0, len(data), 97):
        changed = bytearray(data)
        changed[position] ^= 0x80
        path.write_bytes(changed)
        if not findings(path):
            unseen.append(position)
    assert unseen == []


def test_log_verify_says_that_a_transaction_is_open(tmp_path: Path) -> None:
    write_log(tmp_path, [NoOpRecord(), BeginTransactionRecord("t"), NoOpRecord()])
    assert "note: the transaction that began at offset 1 has not ended" in succeed("verify", tmp_path)


def test_log_verify_of_several_paths_judges_each(tmp_path: Path) -> None:
    (good,) = write_log(tmp_path, [NoOpRecord()])
    bad = tmp_path / "bad.log"
    bad.write_bytes(b"x" * 100)
    result = run("verify", good, bad)

    assert result.exit_code == exit_codes.REFUSED
    verdicts: list[Any] = [line for line in result.stdout.splitlines() if line in ("  OK", "  DAMAGED: 1 finding")]
    assert verdicts == ["  OK", "  DAMAGED: 1 finding"]


@pytest.mark.parametrize(("time_ms", "shown"), [(9, ""), (19, "a"), (29, "abc"), (4_999, "abcde"), (5_000, "abcde")])
def test_log_dump_at_a_time_of_a_log_whose_times_fall_ends_behind_the_last_batch_not_later(
    tmp_path: Path, time_ms: int, shown: str
) -> None:
    """As in a log of Kafka's: the clock of one controller was ahead of its successor's."""
    topics: list[Record] = [TopicRecord(name, TOPIC) for name in "abcde"]
    write_log(tmp_path, topics[:2], topics[2:], times=(10, 5_000, 20, 30, 3_000))

    lines = succeed("dump", "--json", "--at", str(Moment(time_ms=time_ms)), tmp_path).splitlines()

    assert [name for line in lines for name in "abcde" if f'"{name}"' in line] == list(shown)
