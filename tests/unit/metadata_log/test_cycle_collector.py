"""The collector beside a large state: a long collection is followed by a long rest, and what it is told is put back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from quorate.metadata_log.cycle_collector import (
    LONG_S,
    SHORT_S,
    YOUNG_COLLECTIONS_MAX,
    StateSparing,
    collector_resting,
    state_spared,
)


class Cycle:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.myself = self


@pytest.fixture(autouse=True)
def unfrozen_afterwards() -> Iterator[None]:
    """What these tests set apart is given back, and what the whole run did is set apart again."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def sparing(seconds: float) -> StateSparing:
    """As if a collection took so long."""
    times = chain.from_iterable(repeat((0.0, seconds)))
    return StateSparing(lambda: next(times))


def rest_after(seconds: float, generation: int = 2) -> int:
    """Young collections before the next full one, after one that took so long."""
    callback, before = sparing(seconds), gc.get_threshold()
    gc.callbacks.append(callback)
    try:
        gc.collect(generation)
        return gc.get_threshold()[2]
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("seconds", "rest"),
    [(0.0, 100), (SHORT_S, 100), (2 * SHORT_S, 200), (10 * SHORT_S, 1_000), (1.0, YOUNG_COLLECTIONS_MAX)],
)
def test_the_longer_a_full_collection_took_the_more_comes_before_the_next(seconds: float, rest: int) -> None:
    assert rest_after(seconds) == rest


@pytest.mark.parametrize(("seconds", "is_set_apart"), [(LONG_S * 0.9, False), (LONG_S, True)])
def test_what_was_looked_at_for_long_is_not_looked_at_again(seconds: float, is_set_apart: bool) -> None:
    state = [[number] for number in range(50)]
    before = gc.get_freeze_count()
    rest_after(seconds)

    assert (gc.get_freeze_count() - before >= len(state)) == is_set_apart


def test_how_long_a_young_collection_took_does_not_matter() -> None:
    assert rest_after(1.0, generation=1) == gc.get_threshold()[2]


def test_a_process_spares_its_state_and_collects_what_is_left_in_cycles() -> None:
    thresholds = gc.get_threshold()
    with state_spared():
        assert any(isinstance(callback, StateSparing) for callback in gc.callbacks)
        for _ in range(20):
            Cycle()
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, Cycle)]

    assert gc.get_threshold() == thresholds
    assert not any(isinstance(callback, StateSparing) for callback in gc.callbacks)


def test_what_is_made_at_rest_is_set_apart_where_state_is_spared() -> None:
    def made() -> int:
        before = gc.get_freeze_count()
        with collector_resting():
            assert not gc.isenabled()
            state = [[number] for number in range(50)]
        assert gc.isenabled()
        assert len(state) == 50
        return gc.get_freeze_count() - before

    assert made() <= 0
    with state_spared():
        assert made() >= 50


def test_the_collector_works_again_after_a_load_that_failed() -> None:
    with pytest.raises(KeyError), collector_resting():
        raise KeyError

    assert gc.isenabled()
