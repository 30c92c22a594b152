"""Old states of files, and the log between them, as a controller gives its own."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from quorate.controller.reads.past import PastStretch, StretchSize
from quorate.metadata_log.batches.batch import BatchHeader, parse_header
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.wire import Buffer
from quorate.scripts.cli.page import file_past
from quorate.scripts.cli.page.file_past import FilePast
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import Moment, parse_moment
from quorate.snapshots.image_digest import digest_image
from tests.pipeline_logs import BEHEADED_LOG, KAFKA, LogWriter

LOG = KAFKA / "static" / "m3" / "log"
WHOLE = 100_000_000


def past_of(path: Path) -> FilePast:
    return FilePast(path)


def stretch(path: Path, end_offset: int | None, bytes_max: int, records_max: int = WHOLE) -> PastStretch:
    return asyncio.run(past_of(path).stretch_before(end_offset, StretchSize(bytes_max, records_max)))


def offsets(found: PastStretch) -> tuple[int, int]:
    """Of its first record, and behind its last one; the batches follow each other and the state."""
    headers = [parse_header(batch) for batch in found.batches()]
    ends = [found.start.end_offset, *(header.end_offset for header in headers)]
    assert ends[:-1] == [header.base_offset for header in headers]
    return ends[0], ends[-1]


@pytest.mark.parametrize("text", ["5000", "epoch:1", "2026-11-21T00:15:20Z"])
def test_state_at_a_moment_is_that_of_the_files(text: str) -> None:
    moment = parse_moment(text)
    found = asyncio.run(past_of(LOG).at(moment))
    assert digest_image(found) == digest_image(load_image(LOG, moment))


def test_leader_of_an_epoch_is_the_one_the_log_names() -> None:
    past = past_of(LOG)
    assert [past.leader_of(epoch) for epoch in (1, 2, 3)] == [1, 3, None]


def test_whole_log_is_one_stretch_where_it_is_small() -> None:
    found = stretch(LOG, None, WHOLE)
    assert (offsets(found), found.has_earlier) == ((0, 18994), False)


@pytest.mark.parametrize("bytes_max", [1, 50_000, 400_000])
def test_long_log_is_given_from_its_end_with_the_state_before(bytes_max: int) -> None:
    found = stretch(LOG, None, bytes_max)
    begin, end = offsets(found)
    assert (end, found.has_earlier) == (18994, True)
    assert sum(map(len, found.pieces)) <= max(bytes_max, *map(len, found.batches()))
    assert digest_image(found.start.stable) == digest_image(load_image(LOG, Moment(offset=begin)))


@pytest.mark.parametrize("records_max", [1, 500, 9_000])
def test_log_of_many_records_is_given_from_its_end_too(records_max: int) -> None:
    found = stretch(LOG, None, WHOLE, records_max)
    begin, end = offsets(found)
    assert (end, found.has_earlier) == (18994, True)
    begins = [parse_header(batch).base_offset for batch in stretch(LOG, None, WHOLE).batches()]
    assert begin == next((first for first in begins if end - first <= records_max), begins[-1])
    assert digest_image(found.start.stable) == digest_image(load_image(LOG, Moment(offset=begin)))


@pytest.mark.parametrize("below", [30, 31, 35, 39, 40])
def test_of_a_batch_that_what_is_asked_for_ends_in_no_more_is_counted(tmp_path: Path, below: int) -> None:
    log = LogWriter(tmp_path / "log")
    for _ in range(4):
        log.append([r.NoOpRecord()] * 10)
    begin, _ = offsets(stretch(log.path, below, WHOLE, records_max=15))
    assert begin == next(first for first in (10, 20, 30) if below - first <= 15)


async def test_who_gives_up_ends_the_reading_and_the_next_one_has_his_turn_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_reading, goes_on, read = threading.Event(), threading.Event(), list[int]()

    def parsed(batch: Buffer) -> BatchHeader:
        read.append(len(batch))
        is_reading.set()
        assert goes_on.wait(60)
        return parse_header(batch)

    past = past_of(LOG)
    monkeypatch.setattr(file_past, "parse_header", parsed)
    first = asyncio.create_task(past.stretch_before(None, StretchSize(WHOLE, WHOLE)))
    await asyncio.to_thread(is_reading.wait, 60)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(past.stretch_before(None, StretchSize(WHOLE, WHOLE)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert past._turns._lock.locked()
    goes_on.set()
    assert offsets(await second) == (0, 18994)
    of_both = len(read)
    await past.stretch_before(None, StretchSize(WHOLE, WHOLE))
    assert of_both == 1 + len(read) - of_both, "the first one has read no more than one batch"


def test_parts_meet_where_one_asks_for_what_was_before() -> None:
    later = stretch(LOG, None, 200_000)
    begin, _ = offsets(later)
    assert offsets(stretch(LOG, begin, 200_000))[1] == begin


@pytest.fixture
def transaction(tmp_path: Path) -> Path:
    """A log whose offsets 2 to 31 are of one metadata transaction; ten records a batch, but for the first two."""
    log = LogWriter(tmp_path / "log")
    log.append([r.NoOpRecord()])
    log.append([r.NoOpRecord(), r.BeginTransactionRecord("x")])
    for number in range(3):
        log.append([r.TopicRecord(f"t{number}-{n}", bytes([number, n]) * 8) for n in range(10)])
    log.append([r.EndTransactionRecord(), r.NoOpRecord()])
    log.append([r.NoOpRecord()])
    return log.path


def test_part_within_a_transaction_begins_before_it(transaction: Path) -> None:
    found = stretch(transaction, None, WHOLE, records_max=10)
    assert (offsets(found), found.has_earlier, found.start.in_transaction) == ((1, 36), True, False)
    assert offsets(stretch(transaction, None, WHOLE, records_max=1))[0] == 35


def test_transaction_that_is_longer_than_an_answer_may_be_is_refused(transaction: Path) -> None:
    with pytest.raises(ApiError, match="a metadata transaction goes on from offset 1 to beyond the 32 records"):
        stretch(transaction, None, WHOLE, records_max=8)
    assert offsets(stretch(transaction, 1, WHOLE, records_max=8)) == (0, 1)


def test_log_that_ends_inside_of_a_transaction_is_asked_for_up_to_its_end(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log")
    log.append([r.NoOpRecord()])
    log.append([r.BeginTransactionRecord("x"), r.NoOpRecord()])
    log.append([r.NoOpRecord()])
    assert offsets(stretch(log.path, 4, WHOLE)) == (0, 4)
    assert offsets(stretch(log.path, 3, WHOLE)) == (0, 3)
    with pytest.raises(ApiError, match="the log ends at offset 4"):
        stretch(log.path, 5, WHOLE)


def test_log_that_begins_later_is_given_from_there() -> None:
    found = stretch(BEHEADED_LOG, None, WHOLE)
    assert (found.start.end_offset > 0, found.has_earlier) == (True, False)


@pytest.mark.parametrize(
    ("path", "ask"),
    [(LOG, lambda past: past.at(Moment(offset=99_999))),
     (LOG, lambda past: past.stretch_before(99_999, StretchSize(1, 1))),
     (BEHEADED_LOG, lambda past: past.at(Moment(offset=5)))],
)  # fmt: skip
def test_moment_out_of_reach_is_refused(path: Path, ask: object) -> None:
    assert callable(ask)
    with pytest.raises(ApiError) as refused:
        asyncio.run(ask(past_of(path)))
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("records_max", [30, 31, 33])
def test_part_behind_a_checkpoint_is_no_larger_for_the_transaction_before_it(tmp_path: Path, records_max: int) -> None:
    """All of what lies before the checkpoint is one transaction: it fits, or the part begins with the checkpoint."""
    log = LogWriter(tmp_path / "log")
    log.append([r.BeginTransactionRecord("x"), *(r.TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(1, 20))])
    log.append([r.EndTransactionRecord()])
    log.checkpoint(log.offset)
    for _ in range(12):
        log.append([r.NoOpRecord()])
    found = stretch(log.path, None, WHOLE, records_max)
    assert (offsets(found)[0], found.has_earlier) == ((0, False) if records_max == 33 else (21, True))
