"""A log told backwards, from one checkpoint to the one before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.records import ConfigRecord
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.stretches import stretches_of
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image_digest import digest_image
from tests.pipeline_logs import BEHEADED_LOG, KAFKA_LOG, LogWriter


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """Ten batches of one record in segments of their own, and checkpoints at 3 and 7."""
    made = LogWriter(tmp_path / "log")
    for number in range(10):
        made.append([ConfigRecord(4, "", "log.retention.hours", str(number))])
        made.roll()
    for end in (3, 7):
        made.checkpoint(end)
    return made


def offsets(path: Path, below: int | None = None) -> list[tuple[int, list[int]]]:
    """Of each stretch the state's end, and where its batches begin."""
    return [
        (stretch.start.end_offset, [parse_header(batch).base_offset for batch in stretch.batches])
        for stretch in stretches_of(path, below=below)
    ]


def test_log_is_given_in_stretches_from_its_end_backwards(log: LogWriter) -> None:
    assert offsets(log.path) == [(7, [7, 8, 9]), (3, [3, 4, 5, 6]), (0, [0, 1, 2])]
    assert offsets(log.path, 8) == [(7, [7]), (3, [3, 4, 5, 6]), (0, [0, 1, 2])]
    assert offsets(log.path, 7) == [(3, [3, 4, 5, 6]), (0, [0, 1, 2])]


def test_each_stretch_leads_to_the_state_that_the_one_after_it_begins_with() -> None:
    later = digest_image(load_image(KAFKA_LOG))
    for stretch in stretches_of(KAFKA_LOG):
        state = stretch.start
        for batch in stretch.batches:
            state = state.replay_batch(batch)
        assert digest_image(state.stable) == later
        later = digest_image(stretch.start.stable)


def test_log_that_was_cut_ends_with_its_earliest_checkpoint() -> None:
    assert [start for start, _ in offsets(BEHEADED_LOG)][-1] == 15719


def test_damaged_checkpoint_is_passed_over_and_named_once(log: LogWriter) -> None:
    damaged = log.checkpoint(7, cut=1)
    told: list[PassedOver] = []
    starts = [stretch.start.end_offset for stretch in stretches_of(log.path, told.append)]
    assert (starts, [one.path for one in told]) == ([3, 0], [str(damaged)])


def test_damage_in_a_segment_hurts_only_who_goes_back_so_far(log: LogWriter) -> None:
    segment = log.directory / f"{1:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    stretches = stretches_of(log.path)
    assert [len(list(next(stretches).batches)) for _ in range(2)] == [3, 4]
    with pytest.raises(StorageError, match="CRC"):
        list(next(stretches).batches)


def test_log_that_begins_in_the_middle_without_a_checkpoint_is_refused(log: LogWriter, tmp_path: Path) -> None:
    shutil.copytree(log.path, tmp_path / "cut")
    for file in (tmp_path / "cut" / "__cluster_metadata-0").iterdir():
        if file.suffix == ".checkpoint" or file.name < f"{4:020d}":
            file.unlink()
    with pytest.raises(ImageNotAvailable, match="in the middle of history, and there is no checkpoint"):
        next(stretches_of(tmp_path / "cut"))
