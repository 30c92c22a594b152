"""Who led an epoch, by segments: wherever it begins, and where nobody can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import control_batch, data_batch, place_batch
from quorate.metadata_log.directory.epoch_leader import leader_in_files
from quorate.metadata_log.records.records import ConfigRecord, LeaderChangeMessage


def batch(offset: int, epoch: int, leader: int | None = None) -> bytes:
    made = (
        data_batch([(ConfigRecord(4, "1", "a", str(offset)), 0)], 1)
        if leader is None
        else control_batch([(LeaderChangeMessage(leader), 0)], 1)
    )
    return place_batch(made, offset, epoch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Epoch 2 begins in the middle of a segment, 5 with one; 1 began before all of them."""
    segments = {
        10: [batch(10, 1), batch(11, 1), batch(12, 2, 7), batch(13, 2)],
        14: [batch(14, 2), batch(15, 2)],
        16: [batch(16, 5, 8), batch(17, 5), batch(18, 6, 9)],
    }
    for base, batches in segments.items():
        (tmp_path / f"{base:020d}.log").write_bytes(b"".join(batches))
    return tmp_path


@pytest.mark.parametrize(("epoch", "leader"), [(1, None), (2, 7), (3, None), (5, 8), (6, 9), (7, None)])
def test_leader_is_the_one_that_the_first_record_of_the_epoch_names(log: Path, epoch: int, leader: int | None) -> None:
    assert leader_in_files(log, epoch) == leader


def test_damage_costs_the_answer_and_nothing_else(log: Path) -> None:
    file = log / "00000000000000000010.log"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    assert leader_in_files(log, 2) == 7
    data[3 * len(data) // 5] ^= 1
    file.write_bytes(data)
    assert leader_in_files(log, 2) is None


def test_checkpoint_names_no_leader(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000010-0000000002.checkpoint").write_bytes(batch(0, 2, 7))
    assert leader_in_files(tmp_path, 2) is None
