"""Which checkpoints, and which part of the log, need not be kept."""

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.retention import RetentionConfig, superseded


def infos(*ends_and_times: tuple[int, int]) -> list[CheckpointInfo]:
    return [CheckpointInfo(CheckpointId(end, 1), 100, time, 0) for end, time in ends_and_times]


SEGMENTS = [(0, 1_000), (50, 1_000), (100, 1_000), (150, 1_000)]


@pytest.mark.parametrize(
    ("max_bytes", "max_age", "removed"),
    [
        (10**6, 10**6, []),
        # 4,300 bytes: the oldest checkpoint and the segment that ends at 50 and is not needed any more.
        (4_299, 10**6, [40]),
        (3_200, 10**6, [40]),
        (3_199, 10**6, [40, 90]),
        (0, 10**6, [40, 90]),
        # The newest record that goes with the oldest checkpoint is of 500, the newest of all of 900.
        (10**6, 500, []),
        (10**6, 499, [40]),
        (10**6, 100, [40]),
        (10**6, 99, [40, 90]),
    ],
)
def test_retention_removes_the_oldest_and_always_keeps_one(max_bytes: int, max_age: int, removed: list[int]) -> None:
    checkpoints = infos((40, 200), (90, 500), (140, 900))
    found = superseded(checkpoints, SEGMENTS, 1_000, RetentionConfig(max_bytes, max_age))
    assert [checkpoint.end_offset for checkpoint in found] == removed


def test_retention_without_checkpoints_removes_nothing() -> None:
    assert superseded([], SEGMENTS, 1_000, RetentionConfig(0, 0)) == []
