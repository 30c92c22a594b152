"""Batches that a message brought: checked, taken apart, appended together."""

import pytest

from quorate.metadata_log.batches.batch_run import BatchRun, split_run
from quorate.metadata_log.errors import InvariantViolation, MalformedData
from tests.default_parts import log_config
from tests.log_support import Batch, ModelledLog, contents, flush, make_batch

BATCHES = (make_batch(4, epoch=2, count=3), make_batch(7, epoch=2), make_batch(8, epoch=5, count=2))
DATA = b"".join(batch.data for batch in BATCHES)


def run_of(*batches: Batch) -> BatchRun:
    """What a message with these batches becomes."""
    data = b"".join(batch.data for batch in batches)
    return split_run(data, batches[0].base_offset, batches[0].epoch, batches[-1].epoch)


def test_split_of_dense_batches_says_where_each_ends() -> None:
    run = split_run(DATA, 4, 1, 5)
    assert (run.base_offset, run.ends, run.epochs) == (4, [7, 8, 10], [2, 2, 5])
    assert (run.batches, run.size) == ([batch.data for batch in BATCHES], len(DATA))
    assert not run.has_control


def test_tail_of_a_run_begins_where_its_head_ends() -> None:
    run = split_run(DATA, 4, 1, 5)
    assert run.tail(0) is run
    assert run.tail(1) == split_run(DATA[len(BATCHES[0].data) :], 7, 2, 5)


@pytest.mark.parametrize(
    ("data", "base_offset", "epoch_min", "epoch_max"),
    [
        (b"", 4, 1, 5),
        (DATA, 3, 1, 5),
        (DATA, 4, 3, 5),
        (DATA, 4, 1, 4),
        (DATA[:-1], 4, 1, 5),
        (DATA[:-1] + b"?", 4, 1, 5),
        (BATCHES[0].data + BATCHES[2].data, 4, 1, 5),
        (BATCHES[2].data + make_batch(10, epoch=4).data, 8, 1, 5),
    ],
    ids=["empty", "elsewhere", "older", "newer", "cut", "damaged", "gap", "falling"],
)
def test_split_of_what_does_not_follow_is_refused(
    data: bytes, base_offset: int, epoch_min: int, epoch_max: int
) -> None:
    with pytest.raises(MalformedData):
        split_run(data, base_offset, epoch_min, epoch_max)


@pytest.mark.parametrize("segment_bytes", [200, 100_000])
def test_append_run_leaves_the_log_as_one_append_each_does(segment_bytes: int) -> None:
    """Also where the run does not fit into the newest segment."""
    config = log_config(segment_bytes=segment_bytes)
    single, joined = ModelledLog(config=config).log, ModelledLog(config=config).log
    first = make_batch(0, epoch=1, count=4)
    for log in (single, joined):
        log.append(first.data)
    for batch in BATCHES:
        single.append(batch.data)
    joined.append_run(run_of(*BATCHES))
    for log in (single, joined):
        flush(log)
    assert contents(joined) == contents(single) == [first, *BATCHES]
    assert (joined.segments, joined.durable_end) == (single.segments, single.durable_end)
    assert joined.read_run(1, 3) == b"".join(batch.data for batch in BATCHES[:2])


@pytest.mark.parametrize("run", [run_of(make_batch(5, epoch=3)), run_of(make_batch(4, epoch=2))])
def test_append_run_that_does_not_continue_the_log_changes_nothing(run: BatchRun) -> None:
    log = ModelledLog().log
    log.append(make_batch(0, epoch=3, count=4).data)
    with pytest.raises(InvariantViolation):
        log.append_run(run)
    assert log.end_offset == 4


def test_end_of_run_takes_what_fits_but_at_least_one() -> None:
    log = ModelledLog().log
    log.append(make_batch(0, epoch=1, count=4).data)
    log.append_run(run_of(*BATCHES))
    size = len(BATCHES[0].data)
    assert [log.end_of_run(1, 4, limit) for limit in (1, size, 2 * size - 1, 2 * size, 1 << 20)] == [2, 2, 2, 3, 4]
    assert log.end_of_run(1, 3, 1 << 20) == 3
