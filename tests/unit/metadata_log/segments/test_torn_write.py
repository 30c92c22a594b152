"""A write whose pages reached the disk in any order is told from rot, and rot from it."""

from random import Random

import pytest

from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, ModelledLog, contents, make_batch, run_until

WIDE = log_config()
SEGMENT = f"{DIRECTORY}/{0:020d}.log"
PAGE = 4096


def reopened(modelled: ModelledLog) -> MetadataLog:
    return MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)


def with_last_write(flushed: list[int], unsynced: list[int], seed: int = 0) -> ModelledLog:
    """Batches with bodies of these sizes, each flushed; more of one write that is in the cache. The mark is old."""
    modelled = ModelledLog(seed, WIDE)
    rng = Random(seed)
    for size in flushed:
        modelled.append(filling=rng.randbytes(size))
        modelled.flush()
    old_mark = modelled.disk.durable_content(f"{DIRECTORY}/{MARK_NAME}")
    for size in unsynced:
        modelled.append(filling=rng.randbytes(size))
    run_until(modelled, ModelledLog.flush, 2)
    modelled.disk.on_call = lambda operation, path: None
    modelled.disk.power_cut(CrashPolicy.EVERYTHING)
    modelled.disk.put(f"{DIRECTORY}/{MARK_NAME}", old_mark)
    return modelled


def starts_of(modelled: ModelledLog) -> list[int]:
    """Byte position of each batch in the one segment, and the end."""
    starts = [0]
    for batch in modelled.history.batches:
        starts.append(starts[-1] + len(batch.data))
    return starts


def lose(modelled: ModelledLog, page: int, begin: int | None = None) -> None:
    """Zeros where a page of the last write, which began at ``begin``, should be."""
    content = bytearray(modelled.disk.content(SEGMENT))
    begin = starts_of(modelled)[modelled.promised] if begin is None else begin
    low, high = max(page * PAGE, begin), min((page + 1) * PAGE, len(content))
    content[low:high] = bytes(high - low)
    modelled.disk.put(SEGMENT, bytes(content))


@pytest.mark.parametrize("page", range(6))
def test_any_page_of_the_last_write_may_be_missing(page: int) -> None:
    """The write begins in the middle of page 0; batches of it that are whole before the missing page stay."""
    modelled = with_last_write([1_000, 500], [2_000] * 10)
    starts = starts_of(modelled)
    assert starts[-1] > 5 * PAGE
    lose(modelled, page)
    log = reopened(modelled)
    assert log.damage is None
    assert log.torn_tail is not None
    begin = max(page * PAGE, starts[2])
    assert log.end_offset == sum(end <= begin for end in starts[1:])
    assert contents(log) == list(modelled.history.batches[: log.end_offset])


def test_missing_page_is_damage_below_the_mark() -> None:
    modelled = with_last_write([1_000, 500], [2_000] * 10)
    begin = starts_of(modelled)[2]
    modelled.reopen()
    modelled.log.close()
    lose(modelled, 2, begin)
    log = reopened(modelled)
    assert log.damage is not None
    assert "no write that was cut short" not in log.damage.reason
    assert "promised up to 12" in log.damage.reason


def test_missing_page_is_damage_without_a_mark() -> None:
    """Nothing says how much of such a log was promised, as of one that Kafka wrote."""
    modelled = with_last_write([1_000, 500], [2_000] * 10)
    lose(modelled, 2)
    modelled.disk.unlink(f"{DIRECTORY}/{MARK_NAME}")
    assert reopened(modelled).is_damaged


def test_missing_page_in_a_segment_that_has_a_successor_is_damage() -> None:
    """It was durable before the next one was begun."""
    modelled = with_last_write([1_000, 500], [2_000] * 10)
    lose(modelled, 2)
    modelled.disk.put(f"{DIRECTORY}/{12:020d}.log", make_batch(12, 0).data)
    assert reopened(modelled).is_damaged


@pytest.mark.parametrize("has_hole", [False, True], ids=["whole", "hole-behind"])
def test_any_flipped_bit_above_an_old_mark_but_in_the_last_promised_batch_is_damage(has_hole: bool) -> None:
    """A page that is missing behind it makes no rot a torn write."""
    flips = 0
    for seed in range(6):
        rng = Random(seed)
        sizes = [rng.choice((10, 300, 3_000, 9_000)) for _ in range(5)]
        modelled = with_last_write(sizes, [5_000] * 3, seed)
        starts = starts_of(modelled)
        if has_hole:
            lose(modelled, starts[5] // PAGE + 1)
        content = modelled.disk.content(SEGMENT)
        mark = modelled.disk.content(f"{DIRECTORY}/{MARK_NAME}")
        for index in range(4):
            within = [*range(61), *(rng.randrange(61, starts[index + 1] - starts[index]) for _ in range(20))]
            for byte in within:
                modelled.disk.put(SEGMENT, content)
                modelled.disk.put(f"{DIRECTORY}/{MARK_NAME}", mark)
                modelled.disk.flip_bit(SEGMENT, starts[index] + byte, rng.randrange(8))
                log = reopened(modelled)
                assert log.is_damaged, f"seed {seed}, batch {index}, byte {byte}"
                flips += 1
    assert flips > 1_000


@pytest.mark.parametrize("left", range(1, 70))
def test_write_that_begins_just_before_the_end_of_a_page_that_never_came(left: int) -> None:
    """Few zeros may be what belongs there, or one flipped bit: that alone stays damage."""
    head = len(make_batch(0, 0, 1, b"000").data)
    # Numbered so that the write begins at an offset with two bits, in its last byte.
    modelled = with_last_write([10, 10, PAGE - left - 3 * head - 20], [3_000] * 3)
    starts = starts_of(modelled)
    begin = starts[3]
    assert begin == PAGE - left
    before = modelled.disk.content(SEGMENT)
    lose(modelled, 0)
    if modelled.disk.content(SEGMENT) == before:
        assert left < 8
        assert reopened(modelled).end_offset == 6
    else:
        log = reopened(modelled)
        assert not log.is_damaged
        assert log.end_offset == 3


@pytest.mark.parametrize(("left", "is_damaged"), [(8, True), (11, True), (12, False), (17, False)])
def test_one_bit_that_is_missing_at_the_end_of_a_page_is_rot(left: int, is_damaged: bool) -> None:
    """At offset 4 the first 8 bytes of a batch have one bit; its length has another."""
    head = len(make_batch(0, 0, 1, b"000").data)
    modelled = with_last_write([10, 10, 10, PAGE - left - 4 * head - 30], [3_000] * 3)
    assert starts_of(modelled)[4] == PAGE - left
    lose(modelled, 0)
    log = reopened(modelled)
    assert log.is_damaged == is_damaged
    assert log.end_offset == 4


@pytest.mark.parametrize("left", range(1, 61))
def test_write_goes_on_a_page_that_never_came_behind_a_batch_that_had_just_begun(left: int) -> None:
    """The first bytes of a batch are zeros by nature; its next page is missing, and whole batches follow."""
    head = len(make_batch(0, 0, 1, b"000").data)
    modelled = with_last_write([10, 10, PAGE - left - 3 * head - 20], [100, 9_000, 100, 100])
    begin = starts_of(modelled)[3]
    assert begin == PAGE - left
    lose(modelled, 1)
    log = reopened(modelled)
    assert log.damage is None
    assert log.end_offset == 3
