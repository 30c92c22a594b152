"""Where a scan cuts a log: at batch borders, about so many bytes apart, with what it expects at both ends."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import parse_header
from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import Range, all_ranges, plan_log, task_from_json, task_to_json
from tests.pipeline_logs import KAFKA_LOG, LogWriter


def cluster_at(path: Path) -> InputCluster:
    (cluster,) = find_inputs([str(path)])
    return cluster


def ranges(path: Path, range_bytes: int) -> list[Range]:
    return list(all_ranges(plan_log(cluster_at(path), range_bytes=range_bytes)))


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """One segment of some fifty small batches."""
    log = LogWriter(tmp_path / "node")
    log.append_small(50)
    return log


def test_large_file_is_cut_at_batch_borders_and_each_range_says_where_the_next_begins(log: LogWriter) -> None:
    (segment,) = log.path.rglob("*.log")
    data = segment.read_bytes()

    found = ranges(log.path, 500)

    assert len(found) > 5
    assert (found[0].first_byte, found[0].base_offset, found[-1].end_byte) == (0, 0, len(data))
    for one, following in pairwise(found):
        header = parse_header(data, following.first_byte)
        assert (one.end_byte, one.end_offset) == (following.first_byte, following.base_offset)
        assert (header.base_offset, header.epoch) == (following.base_offset, following.epoch_min)
        assert 500 <= following.first_byte - one.first_byte < 500 + header.size + len(data) // 10


@pytest.mark.parametrize(("share", "pieces"), [(1.0, 1), (0.7, 1), (0.6, 2)])
def test_file_is_cut_only_where_it_is_half_as_large_again_as_a_task(log: LogWriter, share: float, pieces: int) -> None:
    (segment,) = log.path.rglob("*.log")

    assert len(ranges(log.path, round(share * segment.stat().st_size))) == pieces


def test_tasks_survive_a_row_of_a_data_frame() -> None:
    """They travel as text."""
    tasks = plan_log(cluster_at(KAFKA_LOG), range_bytes=20_000)

    assert len(tasks) > 5
    assert [task_from_json(task_to_json(task)) for task in tasks] == tasks
    assert [task.number for task in tasks] == list(range(len(tasks)))
