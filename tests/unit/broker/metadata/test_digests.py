"""Digests of a broker's image: they give way to the loop after every small piece of work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.broker.metadata.digests import LONG_PAUSE_S, STANDSTILL_S_MAX, ImageDigests, _Pauses
from quorate.broker.metadata.loader import RECORDS_PUBLISHED_TOGETHER
from quorate.scripts.benchmarks.large_cluster import large_image
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.pauses import rows_at_once

PARTITIONS = 20_000


async def test_a_large_digest_gives_way_after_every_piece_on_a_thread_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image, threads = large_image(PARTITIONS), list[int]()
    monkeypatch.setattr(
        "quorate.broker.metadata.digests._Pauses.__call__", lambda _: threads.append(threading.get_ident())
    )
    loader: Any = SimpleNamespace(image=image)

    _, digest = await asyncio.wait_for(ImageDigests(loader).at(None, 0), 60)

    assert digest == digest_image(image).text
    assert len(threads) >= PARTITIONS / rows_at_once(lambda: None)
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(("lag", "is_long"), [(None, False), (0, False), (RECORDS_PUBLISHED_TOGETHER, True)])
async def test_a_digest_gives_way_for_longer_while_a_mass_change_is_to_be_replayed(
    lag: int | None, *, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    loader: Any = SimpleNamespace(image=large_image(100), lag=lag)
    monkeypatch.setattr("quorate.broker.metadata.digests.threading", SimpleNamespace(Event=Noted))
    await asyncio.wait_for(ImageDigests(loader).at(None, 0), 60)

    assert waits
    assert {wait == LONG_PAUSE_S for wait in waits} == {is_long}
    # It stands still for as long as it may before its first pause is over, and goes on for all that.
    assert (sum(waits) >= STANDSTILL_S_MAX) is is_long


def test_a_mass_change_lasts_between_two_answers_of_a_controller_and_some_seconds_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    now, behind = [100.0], iter([True, *[False] * 100])

    class Noted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            now[0] += timeout or 0.0
            return False

    monkeypatch.setattr("quorate.broker.metadata.digests.threading", SimpleNamespace(Event=Noted))
    monkeypatch.setattr("quorate.broker.metadata.digests.time", SimpleNamespace(monotonic=lambda: now[0]))
    _Pauses(lambda: next(behind))()

    assert set(waits[:-1]) == {LONG_PAUSE_S}
    assert 5.5 <= sum(waits) <= 8.0
    assert waits[-1] < LONG_PAUSE_S, "it is over, and the digest goes on"


async def test_a_digest_that_nobody_waits_for_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def timed(_: object, __: object, pause: Callable[[], None]) -> None:
        try:
            while True:
                pause()
        finally:
            ended.set()

    monkeypatch.setattr("quorate.broker.metadata.digests._timed_digest", timed)
    loader: Any = SimpleNamespace(image=large_image(100), lag=RECORDS_PUBLISHED_TOGETHER)
    asked = asyncio.create_task(ImageDigests(loader).at(None, 0))
    await asyncio.sleep(0)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked

    assert await asyncio.to_thread(ended.wait, 60)
