"""Following a log: steps that together give every committed record once, whatever the log does meanwhile."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.errors import CorruptBatch
from quorate.metadata_log.records.records import NoOpRecord
from quorate.pipeline.files.inputs import InputCluster, InputError, find_inputs
from quorate.pipeline.files.ranges import all_ranges
from quorate.pipeline.files.tail import UNKNOWN, TailPosition, advance, first_place, readable_end, tasks_between
from quorate.pipeline.files.walk import read_range
from tests.pipeline_logs import LogWriter


def cluster_of(log: LogWriter) -> InputCluster:
    (cluster,) = find_inputs([str(log.path)])
    return cluster


def offsets(cluster: InputCluster, start: TailPosition, end: TailPosition, range_bytes: int = 300) -> list[int]:
    """What a step reads."""
    tasks = tasks_between(cluster, start, end, range_bytes)
    return [int(one) for part in all_ranges(tasks) for chunk in read_range(part) for one in chunk.offsets()]


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """A growing log."""
    log = LogWriter(tmp_path / "node")
    log.append_small(5)
    return log


@pytest.mark.parametrize("seed", range(8))
def test_steps_over_a_growing_log_give_every_offset_once(log: LogWriter, seed: int) -> None:
    """Segments roll, epochs rise, steps are as large as they happen to be."""
    chance = Random(seed)
    place = first_place(cluster_of(log), None)
    found: list[int] = []
    for _ in range(12):
        cluster = cluster_of(log)
        after = advance(cluster, place, None, chance.choice((None, 1, 10, 50)))
        found += offsets(cluster, place, after)
        place = after
        log.append_small(chance.randrange(4))
        if chance.random() < 0.3:
            log.roll()
        log.epoch += chance.randrange(2)
    last = advance(cluster_of(log), place, None)

    assert found + offsets(cluster_of(log), place, last) == list(range(log.offset))


def test_step_that_is_repeated_reads_the_same(log: LogWriter) -> None:
    """The log has grown and rolled since it was planned."""
    start, end = TailPosition(0), advance(cluster_of(log), TailPosition(0), None)
    before = tasks_between(cluster_of(log), start, end, 300)
    log.append_small(3)
    log.roll()
    log.append_small(3)

    again = tasks_between(cluster_of(log), start, end, 300)
    assert [(r.first_byte, r.end_byte, r.base_offset) for r in all_ranges(again)] == [
        (r.first_byte, r.end_byte, r.base_offset) for r in all_ranges(before)
    ]


def test_nothing_above_the_commit_point_is_read(log: LogWriter) -> None:
    """It may still be truncated, though it is whole and durable."""
    committed = log.offset
    log.append_small(3)
    log.mark(committed)
    cluster = cluster_of(log)

    end = readable_end(cluster, uncommitted=False)
    assert end == committed
    assert readable_end(cluster, uncommitted=True) == committed
    place = advance(cluster, TailPosition(0), end)
    assert place.offset == committed
    assert advance(cluster, place, end) == place


def test_mark_that_went_back_reads_nothing(log: LogWriter) -> None:
    """After a power cut it may be old."""
    log.mark(1)

    assert advance(cluster_of(log), TailPosition(4), 1) == TailPosition(4)


def test_log_without_a_mark_is_followed_only_on_request(log: LogWriter) -> None:
    """Kafka's files do not tell what is committed."""
    with pytest.raises(
        InputError, match=r"has no mark of a Quorate node, so nothing tells .* option uncommitted to tr"
    ):
        readable_end(cluster_of(log), uncommitted=False)
    assert readable_end(cluster_of(log), uncommitted=True) is None


def test_torn_tail_waits_until_it_is_whole(log: LogWriter) -> None:
    """It is no error, and no record of it is read before."""
    end = log.offset
    log.append([NoOpRecord()] * 3)
    whole = log.segment.read_bytes()
    log.segment.write_bytes(whole[:-3])

    place = advance(cluster_of(log), TailPosition(0), None)
    assert place.offset == end
    log.segment.write_bytes(whole)
    assert advance(cluster_of(log), place, None).offset == log.offset


def test_damage_with_whole_batches_behind_it_is_an_error(log: LogWriter) -> None:
    """With a mark and without: a stream never stands still in silence."""
    data = bytearray(log.segment.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 9] ^= 1
    log.segment.write_bytes(data)

    with pytest.raises(CorruptBatch) as caught:
        advance(cluster_of(log), TailPosition(0), None)
    assert caught.value.position == second
    log.mark(log.offset)
    with pytest.raises(CorruptBatch):
        advance(cluster_of(log), TailPosition(0), log.offset)


def test_log_that_lacks_the_next_record_is_refused(log: LogWriter) -> None:
    """Retention was faster than the stream."""
    first = log.segment
    log.roll()
    log.append_small(1)
    first.unlink()

    with pytest.raises(InputError, match="but the record at offset 2 is the next to be read; retention removed it"):
        advance(cluster_of(log), TailPosition(2), None)


def test_log_that_was_cut_below_what_was_read_is_refused(log: LogWriter) -> None:
    """It is another log."""
    place = advance(cluster_of(log), TailPosition(0), None)
    log.segment.write_bytes(log.segment.read_bytes()[: place.position // 2])

    with pytest.raises(InputError, match="it was truncated or replaced"):
        advance(cluster_of(log), place, None)
    with pytest.raises(InputError, match="it was truncated or replaced"):
        tasks_between(cluster_of(log), TailPosition(0), place, 300)


def test_place_in_another_nodes_segments_is_found_by_offset(log: LogWriter, tmp_path: Path) -> None:
    """The stream moves to a directory whose segments end elsewhere."""
    other = LogWriter(tmp_path / "other")
    for _ in range(5):
        other.append_small(1)
        other.roll()
    assert other.offset == log.offset
    log.append_small(2)
    other.append_small(2)
    place = replace(advance(cluster_of(log), TailPosition(0), None, 6), segment=0)

    found = offsets(cluster_of(other), place, advance(cluster_of(other), place, None))
    assert found == list(range(place.offset, log.offset))


@pytest.mark.parametrize("survived", [1, 4, 7])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("is_cut", [True, False])
def test_log_of_a_quorum_rebuilt_is_not_the_end_of_what_was_read(
    log: LogWriter, tmp_path: Path, survived: int, batch: int, *, is_cut: bool
) -> None:
    """It has the first records in common, and where the lost ones were others of a later epoch, of the same size."""
    log.append([NoOpRecord()] * 8)
    for _ in range(8):
        log.append([NoOpRecord()])
    place = advance(cluster_of(log), TailPosition(0), None)
    step = place if is_cut else replace(place, segment=UNKNOWN)
    renewed = LogWriter(tmp_path / "renewed")
    renewed.append_small(5)
    renewed.append([NoOpRecord()] * 8)
    for _ in range(survived):
        renewed.append([NoOpRecord()])
    assert advance(cluster_of(renewed), place, renewed.offset) == place, "nothing is read before it reaches there"
    renewed.epoch += 1001
    while renewed.offset <= place.offset:
        renewed.append([NoOpRecord()] * batch)

    with pytest.raises(InputError, match="begin again with a new table"):
        advance(cluster_of(renewed), step, None)
    with pytest.raises(InputError, match=r"begin again with a new table|before offset"):
        tasks_between(cluster_of(renewed), TailPosition(0), place, 300)


def test_log_that_rolled_where_reading_ended_goes_on(log: LogWriter) -> None:
    """In the new segment, also where retention has taken the one that holds the batch read last."""
    place = advance(cluster_of(log), TailPosition(0), None)
    old = log.segment
    log.roll()
    log.epoch += 1
    log.append_small(2)

    assert advance(cluster_of(log), place, None).offset == log.offset
    old.unlink()
    assert advance(cluster_of(log), place, None).offset == log.offset
