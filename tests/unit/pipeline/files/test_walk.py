"""Ranges of a log read as chunks: what was written comes back with its offsets, and damage is never a short read."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quorate.metadata_log.batches.batch import (
    HEADER_BYTES,
    build_batch,
    data_batch,
    frame_record,
    iter_records,
    parse_header,
    place_batch,
)
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptBatch, StorageError
from quorate.metadata_log.records.records import NoOpRecord, TopicRecord
from quorate.metadata_log.segments.mark import Mark, MarkFile
from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import RANGE_BYTES, all_ranges, plan_checkpoint, plan_log
from quorate.pipeline.files.walk import CHUNK_BYTES, EVERYTHING, LogChunk, RecordSelection, read_range
from quorate.pipeline.jobs.replay import offset_at_time
from tests.pipeline_logs import KAFKA_LOG, TIME, LogWriter


def cluster_at(path: Path) -> InputCluster:
    (cluster,) = find_inputs([str(path)])
    return cluster


def rows(chunk: LogChunk) -> Iterator[tuple[int, Any, int]]:
    """Every record of a chunk: offset, record, version."""
    for run, offsets in chunk.runs():
        for row, offset in enumerate(offsets.tolist()):
            yield offset, run.record(row), run.version
    yield from ((offset, NoOpRecord(), 0) for offset in chunk.no_ops().tolist())
    yield from chunk.records()


def read(
    path: Path, *, range_bytes: int = RANGE_BYTES, chunk_bytes: int = CHUNK_BYTES, wanted: RecordSelection = EVERYTHING
) -> list[tuple[int, Any, int]]:
    """All records of a log, in order of offset."""
    tasks = plan_log(
        cluster_at(path), range_bytes=range_bytes, first_offset=wanted.first_offset, end_offset=wanted.end_offset
    )
    chunks = (chunk for one in all_ranges(tasks) for chunk in read_range(one, wanted, chunk_bytes=chunk_bytes))
    found = [row for chunk in chunks for row in rows(chunk)]
    return sorted(found, key=lambda row: row[0])


def read_checkpoint(cluster: InputCluster) -> list[LogChunk]:
    return [chunk for one in all_ranges(plan_checkpoint(cluster, cluster.checkpoints[0])) for chunk in read_range(one)]


def expected(path: Path) -> list[tuple[int, Any, int]]:
    """The same, read one by one."""
    files = [file for file in find_files(path) if not file.is_checkpoint]
    logged = [one for file in files for batch in iter_batches(file) for one in iter_records(batch.data)]
    return [(one.offset, one.record, one.version) for one in logged]


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """Three segments of small batches."""
    log = LogWriter(tmp_path / "node")
    for index in range(3):
        if index:
            log.roll()
        log.append_small(10)
    return log


@pytest.mark.parametrize(("range_bytes", "chunk_bytes"), [(RANGE_BYTES, CHUNK_BYTES), (20_000, 5_000), (1, 1)])
def test_log_of_kafka_read_in_ranges_has_every_record_at_its_offset(range_bytes: int, chunk_bytes: int) -> None:
    """However it is cut: small batches, fencings of 1,500 changes, control batches."""
    assert read(KAFKA_LOG, range_bytes=range_bytes, chunk_bytes=chunk_bytes) == expected(KAFKA_LOG)


@pytest.mark.parametrize("seed", range(5))
def test_random_offsets_wanted_are_given_and_no_others(log: LogWriter, seed: int) -> None:
    """Also where they begin or end within a batch."""
    chance = Random(seed)
    first = chance.randrange(log.offset)
    end = chance.randrange(first + 1, log.offset + 1)
    found = read(log.path, range_bytes=400, chunk_bytes=300, wanted=RecordSelection(first, end))

    assert found == expected(log.path)[first:end]


def test_times_wanted_leave_out_whole_batches(log: LogWriter) -> None:
    """A batch's time is that of its base offset here."""
    found = read(log.path, wanted=RecordSelection(first_time=TIME + 20_000, last_time=TIME + 60_000))
    bases = sorted({one.base_offset for one in _headers(log) if 20 <= one.base_offset <= 60})

    assert found[0][0] == bases[0]
    assert [row for row in expected(log.path) if bases[0] <= row[0] <= found[-1][0]] == found
    assert parse_header(log.segment.read_bytes()).timestamp not in range(TIME, TIME + 20_000)


def _headers(log: LogWriter) -> list[Any]:
    files = [file for file in find_files(log.path) if not file.is_checkpoint]
    return [batch.header for file in files for batch in iter_batches(file)]


def test_chunk_says_types_versions_and_batches_of_every_record() -> None:
    """Row by row the same as the records themselves say."""
    (one,) = list(all_ranges(plan_log(cluster_at(KAFKA_LOG))))[:1]
    chunk = next(read_range(one))
    batches = list(iter_batches(find_files(KAFKA_LOG)[0]))
    logged = [one for batch in batches for one in iter_records(batch.data)]

    assert chunk.offsets().tolist() == [one.offset for one in logged]
    assert chunk.versions().tolist() == [one.version for one in logged]
    assert chunk.batches.positions.tolist() == [batch.position for batch in batches]
    assert chunk.batches.base_offsets[chunk.batch_rows()].tolist() == [
        batch.header.base_offset for batch in batches for _ in range(batch.header.record_count)
    ]
    assert chunk.batches.timestamps[chunk.batch_rows()].tolist() == [one.timestamp for one in logged]
    assert set(chunk.types().tolist()) >= {2, 3, 4, 5, 12, 20}


def test_records_of_wanted_types_are_found_without_the_mass(log: LogWriter) -> None:
    """And nothing else is."""
    chunks = [chunk for one in all_ranges(plan_log(cluster_at(log.path))) for chunk in read_range(one)]
    found = [row for chunk in chunks for row in chunk.records(frozenset({2}))]

    assert found == [row for row in expected(log.path) if type(row[1]) is TopicRecord]


# --- damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [0, 8, 12, 16, 17, 30, 57, 70])
@pytest.mark.parametrize("range_bytes", [RANGE_BYTES, 400])
def test_flipped_bit_anywhere_in_the_middle_is_damage_at_its_batch(
    log: LogWriter, field: int, range_bytes: int
) -> None:
    """Base offset, length, epoch, magic, CRC, time, count or a record: file, position and offset are named."""
    segment = sorted(log.directory.glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    batch = list(iter_batches(find_files(log.path)[1]))[4]
    data[batch.position + field] ^= 0x10
    segment.write_bytes(data)

    with pytest.raises(CorruptBatch) as caught:
        read(log.path, range_bytes=range_bytes, chunk_bytes=300)
    assert (caught.value.path, caught.value.position) == (str(segment), batch.position)
    assert caught.value.offset == batch.header.base_offset


def test_every_flipped_bit_of_a_length_is_damage(log: LogWriter) -> None:
    """No CRC covers it, and a wrong one looks like a log that ends early."""
    segment = min(log.directory.glob("*.log"))
    batch = list(iter_batches(find_files(log.path)[0]))[4]
    good = segment.read_bytes()
    for bit in range(32):
        data = bytearray(good)
        data[batch.position + 8 + bit // 8] ^= 1 << bit % 8
        segment.write_bytes(data)
        with pytest.raises(CorruptBatch) as caught:
            read(log.path)
        assert caught.value.position == batch.position


def test_segment_cut_at_a_batch_border_does_not_reach_the_next(log: LogWriter) -> None:
    """Every batch in it is good, and yet records are missing."""
    segment = sorted(log.directory.glob("*.log"))[1]
    last = list(iter_batches(find_files(log.path)[1]))[-1]
    segment.write_bytes(segment.read_bytes()[: last.position])

    with pytest.raises(CorruptBatch, match=rf"it ends at offset {last.header.base_offset}, but .*log begins at"):
        read(log.path)


def test_missing_segment_is_a_gap_that_names_both_sides(log: LogWriter) -> None:
    """The one before says what is missing."""
    first, second, third = sorted(log.directory.glob("*.log"))
    second.unlink()

    with pytest.raises(CorruptBatch, match=rf"{first}: .*{third} begins at {int(third.stem)}: restore what is missing"):
        read(log.path)


def test_overlapping_segments_name_each_other(log: LogWriter) -> None:
    """A segment of another node, rolled elsewhere."""
    first, second, _ = sorted(log.directory.glob("*.log"))
    first.write_bytes(first.read_bytes() + second.read_bytes())

    with pytest.raises(CorruptBatch, match=rf"but {second} begins at {int(second.stem)}: the two overlap"):
        read(log.path)


def test_segment_of_a_higher_epoch_than_the_next_is_damage(log: LogWriter) -> None:
    """No CRC covers epochs either."""
    log.epoch = 3
    log.append_small(1)
    log.epoch = 2
    log.roll()
    log.append_small(1)

    with pytest.raises(CorruptBatch, match="epoch 3, while what follows it has epoch 2"):
        read(log.path)


def test_truncated_last_batch_is_damage_without_a_mark(log: LogWriter) -> None:
    """Nothing says that it was never promised."""
    log.segment.write_bytes(log.segment.read_bytes()[:-5])

    with pytest.raises(CorruptBatch, match="is cut short"):
        read(log.path)


def test_truncated_last_batch_above_the_mark_is_a_torn_tail(log: LogWriter) -> None:
    """Below it, it is damage."""
    whole = log.segment.read_bytes()
    base = log.append([NoOpRecord()])
    log.segment.write_bytes(log.segment.read_bytes()[:-5])
    _mark(log, base)

    assert len(read(log.path)) == base
    log.segment.write_bytes(whole[:-5])
    with pytest.raises(CorruptBatch, match="is cut short"):
        read(log.path)


def _mark(log: LogWriter, durable_end: int) -> None:
    mark = MarkFile(RealDisk(), str(log.directory))
    for _ in mark.create(Mark(durable_end, 1, durable_end)):
        pass
    mark.close()


def test_checkpoint_without_its_end_is_damage(log: LogWriter) -> None:
    """Cut within a batch, and at a batch's border."""
    path = log.checkpoint(5)
    footer = HEADER_BYTES + len(frame_record(0, b"\0\0\0\4", b"\0\0\0"))
    data = path.read_bytes()
    for cut, sentence in ((3, "cut short"), (footer, "does not end with a SnapshotFooter")):
        path.write_bytes(data[: len(data) - cut])
        with pytest.raises(CorruptBatch, match=sentence):
            read_checkpoint(cluster_at(log.path))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (b"\1\2\0\5abc", "damaged at byte 0, offset 0: "),
        (b"\1\x63\0\0", "record type 99 version 0 is not supported; it was written by a later version"),
        (b"\1\2\x09\0", "record type 2 version 9 is not supported"),
        (b"\2\2\0\0", "record frame version 2"),
    ],
)
def test_value_that_is_not_the_format_is_told_with_its_place(tmp_path: Path, value: bytes, sentence: str) -> None:
    """Its batch has a good CRC: somebody wrote it so."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(place_batch(build_batch(frame_record(0, None, value), 1, TIME), 0, 1))

    with pytest.raises(StorageError) as caught:
        read(tmp_path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"\x02\0", b"\xff\xff\xff\xff\x7f", b"\x7e" + bytes(40), bytes(64)])
def test_framing_that_does_not_fill_its_batch_is_damage(tmp_path: Path, body: bytes) -> None:
    """Or overflows it."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(place_batch(build_batch(body + b"\0", 40, TIME), 0, 1))

    with pytest.raises(CorruptBatch):
        read(tmp_path)


@pytest.mark.parametrize(
    ("time", "offset"), [(9, 0), (10, 1), (19, 1), (20, 3), (29, 3), (30, 4), (4_999, 5), (5_000, 5)]
)
def test_offset_at_a_time_of_a_log_whose_times_fall_is_the_end_of_the_last_batch_not_later(
    tmp_path: Path, time: int, offset: int
) -> None:
    """As in a log of Kafka's: the clock of one controller was ahead of its successor's."""
    times = (10, 5_000, 20, 30, 3_000)
    for first, last in ((0, 3), (3, 5)):
        made = [place_batch(data_batch([(NoOpRecord(), 0)], times[n]), n, 1) for n in range(first, last)]
        (tmp_path / f"{first:020d}.log").write_bytes(b"".join(made))

    assert offset_at_time(cluster_at(tmp_path), time) == offset
