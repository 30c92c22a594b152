"""Batches replayed together give what they give one by one: the same state, or the same error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.replay import joined_replay
from quorate.snapshots.replay.joined_replay import JoinedReplay
from quorate.snapshots.replay.replay_state import ReplayState
from tests.random_logs.logs import batches_of, random_records
from tests.record_stream import EXAMPLES

seeds = st.integers(0, 2**32 - 1)


def batches(seed: int) -> list[bytes]:
    """A log with some dozens of changes of each partition, and transactions."""
    chance = Random(seed)
    return [data for _, data in batches_of(chance, random_records(chance, 60))]


def one_by_one(log: Sequence[bytes], state: ReplayState) -> ReplayState:
    for batch in log:
        state = state.replay_batch(batch)
    return state


def together(log: Sequence[bytes], state: ReplayState) -> ReplayState:
    replay = JoinedReplay(state)
    for batch in log:
        replay.add(batch)
    return replay.finish()


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_batches_replayed_together_give_the_state_that_they_give_one_by_one(seed: int) -> None:
    log, chance = batches(seed), Random(seed)
    states = state, joined = ReplayState(), ReplayState()
    while log:
        count = chance.choice((1, 3, 10, 40))
        part, log = log[:count], log[count:]
        states = state, joined = one_by_one(part, state), together(part, joined)
        assert joined == state
    assert states[0].end_offset


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_batches_that_cannot_be_replayed_are_refused_together_as_one_by_one(seed: int) -> None:
    log, chance = batches(seed), Random(seed)
    del log[chance.randrange(len(log))]
    damaged = bytearray(log[at := chance.randrange(len(log))])
    damaged[chance.randrange(61, len(damaged))] ^= 1 << chance.randrange(8)
    log[at] = bytes(damaged)

    assert _outcome(together, log) == _outcome(one_by_one, log)


def _outcome(replay: Callable[[Sequence[bytes], ReplayState], ReplayState], log: Sequence[bytes]) -> object:
    try:
        return replay(log, ReplayState())
    except QuorateError as error:
        return type(error), str(error)


def test_batches_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    log = batches(1)
    monkeypatch.setattr(joined_replay, "_BYTES_AT_ONCE", sum(map(len, log[:-1])))
    replay = JoinedReplay(ReplayState())
    for batch in log[:-1]:
        replay.add(batch)

    assert not replay._waiting
    assert replay.finish() == one_by_one(log[:-1], ReplayState())
