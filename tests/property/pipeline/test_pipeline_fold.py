"""The independent fold says what a naive replay says, and what the controllers' replay says, however a log is cut."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from tests.random_logs.folded import states
from tests.random_logs.logs import NaiveLog, batches_of, naive_digest, random_cuts, random_records
from tests.record_stream import EXAMPLES, versioned

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_state_at_every_offset_is_that_of_naive_replay(seed: int) -> None:
    chance = Random(seed)
    operations = random_records(chance, 12)
    records = [record for operation in operations for record in operation]
    tasks = list(random_cuts(chance, batches_of(chance, operations)))
    moments = sorted({0, len(records), *chance.sample(range(len(records)), min(len(records), 20))})

    found = states(tasks, moments)

    naive = NaiveLog()
    for offset, record in enumerate([*records, None]):
        if offset in found:
            assert found[offset].digest() == naive_digest(naive.stable.records()), offset
        if record is not None:
            naive.apply(record)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_any_cutting_into_tasks_gives_the_state_of_the_controllers_replay(seed: int) -> None:
    chance = Random(seed)
    operations = random_records(chance, 30)
    records = [record for operation in operations for record in operation]
    batches = batches_of(chance, operations)
    moments = sorted({*chance.sample(range(len(records) + 1), min(4, len(records))), len(records)})

    at_once = states([batches], moments)
    in_tasks = states(list(random_cuts(chance, batches)), moments)

    state = ReplayState()
    for offset, record in enumerate([*records, None]):
        if offset in moments:
            expected = digest_image(state.stable).value
            assert at_once[offset].digest() == expected, offset
            assert in_tasks[offset].digest() == expected, offset
        if record is not None:
            state = state.replay_items([versioned(record)], offset, 1, 7)
