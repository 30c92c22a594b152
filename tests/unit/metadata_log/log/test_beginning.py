"""What lies before the log's start and in its first segment all the same."""

from __future__ import annotations

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.errors import CorruptBatch
from quorate.metadata_log.log.beginning import Beginning
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, ModelledLog

#: Several strides of the places that are remembered.
FILLING = b"f" * 1_000
BATCHES = 400
MANY = 1 << 30
SEGMENT = f"{DIRECTORY}/00000000000000000000.log"


def long_log() -> ModelledLog:
    """Batches of two records, 100 in each epoch, all of them durable and committed."""
    modelled = ModelledLog(config=log_config())
    for number in range(BATCHES):
        modelled.append(2, epoch=1 + number // 100, filling=FILLING)
    modelled.flush()
    modelled.commit(2 * BATCHES)
    return modelled


def beginning_of(modelled: ModelledLog) -> Beginning:
    assert modelled.log.beginning is not None
    return modelled.log.beginning


def bytes_of(modelled: ModelledLog, first: int, stop: int) -> bytes:
    return b"".join(batch.data for batch in modelled.history.batches[first:stop])


def test_what_two_checkpoints_cut_off_is_read_as_it_was() -> None:
    modelled = long_log()
    for start in (246, 600):
        modelled.delete_prefix(start)
        modelled.flush()
        beginning = beginning_of(modelled)
        assert (beginning.end_offset, modelled.log.start_offset) == (start, start)
        assert beginning.read_from(0, MANY).data == bytes_of(modelled, 0, start // 2)
        modelled.check_memory()
    beginning = beginning_of(modelled)
    for offset, first, stop in ((0, 0, 1), (130, 65, 66), (131, 65, 66), (131, 65, 215), (599, 299, 300)):
        read = beginning.read_from(offset, len(bytes_of(modelled, first, stop)))
        assert read == (bytes_of(modelled, first, stop), 2 * first, 2 * stop, 1 + (stop - 1) // 100)
        assert beginning.read_from(offset, 1).end_offset == 2 * first + 2


def test_epochs_are_known_by_where_they_begin() -> None:
    modelled = long_log()
    modelled.delete_prefix(246)
    modelled.delete_prefix(600)
    beginning = beginning_of(modelled)
    assert [beginning.epoch_at(offset) for offset in (2, 199, 200, 202, 600)] == [1, None, 1, 2, 3]
    assert [beginning.end_of_epoch(epoch) for epoch in range(5)] == [(0, 0), (1, 200), (2, 400), None, None]


def test_there_is_none_once_its_segment_is_removed() -> None:
    modelled = ModelledLog()
    for _ in range(12):
        modelled.append(epoch=2)
    modelled.flush()
    modelled.commit(12)
    modelled.delete_prefix(1)
    assert beginning_of(modelled).end_offset == 1
    modelled.delete_prefix(7)
    assert modelled.log.segments[0][0] > 0
    assert modelled.log.beginning is None
    modelled.delete_prefix(8)
    assert modelled.log.beginning is None


def test_there_is_none_of_what_no_file_has_yet() -> None:
    modelled = ModelledLog(config=log_config())
    modelled.append(3)
    modelled.commit(3)
    modelled.delete_prefix(3)
    assert modelled.log.beginning is None


def test_there_is_none_of_a_log_that_was_dropped() -> None:
    modelled = long_log()
    modelled.delete_prefix(246)
    modelled.install(CheckpointId(9_000, 9))
    assert modelled.log.beginning is None


def test_damage_in_it_is_told_with_its_place() -> None:
    modelled = long_log()
    modelled.delete_prefix(246)
    position = len(bytes_of(modelled, 0, 70))
    data = bytearray(modelled.disk.content(SEGMENT))
    data[position + 90] ^= 1
    modelled.disk.put(SEGMENT, bytes(data))
    with pytest.raises(CorruptBatch, match=rf"damaged at byte {position}, offset 140: .*CRC"):
        beginning_of(modelled).read_from(0, MANY)
    assert beginning_of(modelled).read_from(0, 1).end_offset == 2
