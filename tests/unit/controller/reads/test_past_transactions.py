"""Parts of a running controller's log that would begin inside of a metadata transaction."""

from __future__ import annotations

from typing import cast

import pytest

from quorate.controller.feed.feed import FeedChunk, FeedSource
from quorate.controller.reads.past import Checkpoints, PastImages, StretchSize
from quorate.metadata_log.batches.batch import data_batch, parse_header, place_batch
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records import records as r
from tests.unit.controller.reads.test_broker_absences import Log

#: Offsets 2 to 13 are of one transaction.
RECORDS: tuple[r.Record, ...] = (
    r.NoOpRecord(),
    r.NoOpRecord(),
    r.BeginTransactionRecord("x"),
    *(r.TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(1, 11)),
    r.EndTransactionRecord(),
    r.NoOpRecord(),
)


class SearchedLog(Log):
    """Its batches are of one record, and one byte, each."""

    def bytes_from(self, offset: int) -> int:
        return len(self.records) - offset

    def epoch_at(self, offset: int) -> int | None:
        return 1


class NoCheckpoints:
    infos = ()


def past(records: tuple[r.Record, ...]) -> PastImages:
    log = cast(FeedSource, SearchedLog(records))
    return PastImages(log, cast(Checkpoints, NoCheckpoints()), lambda: (), lambda: 0.0)


@pytest.mark.parametrize("records", [RECORDS, RECORDS[:-2]])
async def test_part_begins_before_the_transaction(records: tuple[r.Record, ...]) -> None:
    found = await past(records).stretch_before(None, StretchSize(1_000, 4))
    assert (found.start.end_offset, found.start.in_transaction, found.has_earlier) == (2, False, True)
    assert len(list(found.batches())) == len(records) - 2


async def test_transaction_that_is_longer_than_an_answer_may_be_is_refused() -> None:
    with pytest.raises(ApiError, match="from offset 2 to beyond the 12 records") as refused:
        await past(RECORDS).stretch_before(None, StretchSize(1_000, 3))
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    found = await past(RECORDS).stretch_before(2, StretchSize(1_000, 3))
    assert (found.start.end_offset, found.has_earlier) == (0, False)


class BatchedLog(SearchedLog):
    """Its batches are of three records each."""

    def read_from(self, offset: int, _: int) -> FeedChunk:
        base, end = offset // 3 * 3, min(offset // 3 * 3 + 3, len(self.records))
        batch = place_batch(data_batch([(record, 0) for record in self.records[base:end]], 1_000), base, 1)
        return FeedChunk(bytes(batch), base, end, 1, is_cut=False)

    def epoch_at(self, offset: int) -> int | None:
        return None if offset % 3 and offset < len(self.records) else 1


@pytest.mark.parametrize("records_max", [4, 6, 9])
async def test_part_begins_with_the_batch_that_the_transaction_begins_in(records_max: int) -> None:
    log = cast(FeedSource, BatchedLog(RECORDS[1:]))  # the transaction begins with the second record of a batch
    images = PastImages(log, cast(Checkpoints, NoCheckpoints()), lambda: (), lambda: 0.0)
    found = await images.stretch_before(None, StretchSize(1_000, records_max))
    headers = [parse_header(batch) for batch in found.batches()]
    assert [header.base_offset for header in headers] == [0, 3, 6, 9, 12]
    assert (found.start.end_offset, found.start.in_transaction, found.has_earlier) == (0, False, False)
