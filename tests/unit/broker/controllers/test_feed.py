"""Checks on what a controller's feed sends."""

import pytest

from quorate.broker.controllers.feed import (
    LOG_BEGIN,
    ControllerStatus,
    FeedPosition,
    UntrustworthyAnswer,
    check_batches,
)
from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import NoOpRecord

STATUS = ControllerStatus(node_id=1, cluster_id="c", leader_id=1, epoch=3, high_watermark=100)


def batch(base_offset: int, epoch: int, count: int = 1) -> bytes:
    return place_batch(data_batch([(NoOpRecord(), 0)] * count, 1_000), base_offset, epoch)


def test_check_batches_continuous_gives_each_with_its_place() -> None:
    data = batch(10, 2, count=3) + batch(13, 3)

    checked = check_batches(data, FeedPosition(10, 2), STATUS)

    assert [(at.start, at.header.base_offset, at.header.end_offset) for at in checked] == [
        (0, 10, 13),
        (len(batch(10, 2, count=3)), 13, 14),
    ]
    assert check_batches(b"", FeedPosition(500, 3), STATUS) == [], "a controller that is behind sends nothing"


@pytest.mark.parametrize(
    ("data", "position", "why"),
    [
        (batch(1, 1), LOG_BEGIN, "a batch begins at offset 1 where 0 is due"),
        (batch(0, 1) + batch(0, 1), LOG_BEGIN, "a batch begins at offset 0 where 1 is due"),
        (batch(5, 1), FeedPosition(5, 2), "has epoch 1, not between 2 before it and 3 of controller 1"),
        (batch(5, 4), FeedPosition(5, 2), "has epoch 4, not between 2 before it and 3 of controller 1"),
        (batch(99, 3, count=2), FeedPosition(99, 3), "only those below 100 are committed"),
        (batch(0, 1)[:-1], LOG_BEGIN, "the batch due at offset 0, byte 0 of the answer"),
        (batch(0, 1) + b"\0" * 10, LOG_BEGIN, "less than a batch header"),
    ],
)
def test_check_batches_wrong_is_refused(data: bytes, position: FeedPosition, why: str) -> None:
    with pytest.raises(UntrustworthyAnswer, match=why):
        check_batches(data, position, STATUS)


def test_check_batches_any_flipped_bit_behind_the_patched_fields_is_refused() -> None:
    """The CRC covers everything but base offset, length and epoch, and those three are compared with what is due."""
    data = batch(7, 3, count=2)
    for byte in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[byte] ^= 1 << bit
            if byte in range(12, 16) and int.from_bytes(damaged[12:16], "big") in range(2, 4):
                continue  # another epoch that could follow: only a comparison with the log can tell
            with pytest.raises(UntrustworthyAnswer):
                check_batches(bytes(damaged), FeedPosition(7, 2), STATUS)
