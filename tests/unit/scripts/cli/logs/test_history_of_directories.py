"""`quorate history --from A --from B`: what directories of one cluster have between them, as one log."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.records import ConfigRecord, TopicRecord
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.logs.joined_files import OtherCluster, log_of_directories
from tests.pipeline_logs import LogWriter

TOPIC = bytes(16)


def written(path: Path, cluster: str = "a") -> LogWriter:
    """A log in segments of one batch: a topic at offset 0, and a change of its config at each of 1 to 9."""
    log = LogWriter(path, cluster)
    log.append([TopicRecord("t", TOPIC)])
    for number in range(1, 10):
        log.roll()
        log.epoch = 1 + number // 5
        log.append([ConfigRecord(2, "t", "retention.ms", str(number))])
    return log


def copy(log: LogWriter, path: Path, first: int = 0, end: int = 10) -> Path:
    """A directory that holds the log's segments from one offset to another only; beheaded it has a checkpoint."""
    shutil.copytree(log.path, path)
    for segment in (path / "__cluster_metadata-0").glob("*.log"):
        if not first <= int(segment.stem) < end:
            segment.unlink()
    if first:
        other = LogWriter(path.with_name(f"{path.name}-checkpoint"), None)
        other.epoch = 1 + (first - 1) // 5
        shutil.move(other.checkpoint(first), path / "__cluster_metadata-0")
        shutil.rmtree(other.path)
    return path


def told(*paths: Path) -> tuple[list[int], list[str]]:
    """The offsets of the log that they have between them, and what is said to be left out."""
    joined = log_of_directories(paths)
    stretches = list(joined.stretches)[::-1]
    headers = [parse_header(batch) for stretch in stretches for batch in stretch.batches]
    assert [header.base_offset for header in headers] == list(range(stretches[0].start.end_offset, 10))
    assert [header.epoch for header in headers] == [1 + header.base_offset // 5 for header in headers]
    return [header.base_offset for header in headers], joined.left_out


@pytest.mark.parametrize(
    "parts", [[(0, 4), (4, 10)], [(0, 7), (3, 10)], [(0, 3), (2, 7), (6, 10)], [(0, 10), (5, 10)], [(0, 10), (0, 6)]]
)
def test_directories_have_one_log_between_them(tmp_path: Path, parts: list[tuple[int, int]]) -> None:
    """One after the other, overlapping, in a chain, and one in the other; in whatever order they are given."""
    log = written(tmp_path / "log")
    paths = [copy(log, tmp_path / str(number), *part) for number, part in enumerate(parts)]

    assert told(*paths) == told(*reversed(paths)) == (list(range(10)), [])


def test_what_was_never_committed_is_not_told(tmp_path: Path) -> None:
    """A controller that was cut off has records of its own behind those that it shares with the others."""
    log = written(tmp_path / "log")
    lost = LogWriter(tmp_path / "lost", "a")
    for segment in sorted((log.path / "__cluster_metadata-0").glob("*.log"))[:5]:
        shutil.copy(segment, lost.directory)
    lost.offset, lost.epoch = 5, 1
    for _ in range(9):
        lost.roll()
        lost.append([ConfigRecord(2, "t", "retention.ms", "lost")])

    assert told(lost.path, copy(log, tmp_path / "newest", 3)) == (list(range(10)), [])


def test_directory_that_does_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    """It ends before the next begins, is of another log, or is damaged."""
    log = written(tmp_path / "log")
    newest, short = copy(log, tmp_path / "newest", 6), copy(log, tmp_path / "short", 0, 3)
    assert told(short, newest) == (
        [6, 7, 8, 9], [f"{short}: it ends at offset 3, and what is read of the others begins at 6"],
    )  # fmt: skip

    other = LogWriter(tmp_path / "other", "a")
    for number in range(8):
        other.append([ConfigRecord(2, "t", "retention.ms", f"other {number}")])
    assert told(newest, other.path) == (
        [6, 7, 8, 9], [f"{other.path}: it is not the log of {newest}: at offset 6 they differ"],
    )  # fmt: skip

    damaged = copy(log, tmp_path / "damaged")
    segment = damaged / "__cluster_metadata-0" / segment_name(4)
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    offsets, (left_out,) = told(newest, damaged)
    assert (offsets, str(segment) in left_out) == ([6, 7, 8, 9], True)
    with pytest.raises(StorageError, match=str(segment)):
        log_of_directories([damaged, damaged])


def test_directories_of_two_clusters_have_no_log(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one"), written(tmp_path / "other", "b")
    sentence = rf"^{other.path}: is of cluster b, and {one.path} of a; give the directories of one cluster$"
    with pytest.raises(OtherCluster, match=sentence):
        log_of_directories([one.path, other.path])


def test_command_tells_as_far_back_as_any_directory_reaches(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    newest, oldest, short = (
        copy(log, tmp_path / name, *part) for name, part in {"n": (6, 10), "o": (0, 8), "s": (0, 3)}.items()
    )
    arguments = ["history", "config", "topic/t", "--json"]

    def lines(*paths: Path) -> tuple[list[int], str]:
        named = [word for path in paths for word in ("--from", str(path))]
        seen = CliRunner().invoke(make_app([*arguments, *named]), [*arguments, *named])
        assert seen.exit_code == 0, (seen.output, seen.exception)
        return [json.loads(line)["base_offset"] for line in seen.stdout.splitlines()], seen.stderr

    assert lines(newest, oldest) == lines(log.path) == (list(range(1, 10)), "")
    offsets, said = lines(newest, short)
    assert offsets == [6, 7, 8, 9]
    assert said.startswith(f"quorate: left out: {short}: it ends at offset 3, ")
    assert "quorate: history begins at offset 6, time 20" in said
