"""A mass change that lasts for longer than a follower may lag: nobody leaves an ISR for what was not said meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, count, pairwise, repeat
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.environment import BrokerMachine
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.publisher import Manifest
from quorate.broker.replicas import follower
from quorate.broker.replicas.manager import Station
from quorate.broker.replicas.mass_change import MASS_RECORDS
from quorate.broker.replicas.peers import PeerAddresses
from quorate.broker.replicas.rehearsal import ExchangeTiming, RehearsalReplicas
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.metadata_log.records.records import Record
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage
from tests.unit.broker.images import change, cluster_image, partition, replayed
from tests.unit.own_time import passes, run_in_own_time

#: Of one message here, so that few rows take as many messages as millions do.
ROWS_PER_MESSAGE = 16
PORTS = {1: 1001, 2: 1002}
#: There and back again.
TRIP_S = 0.004
CLUSTER_ID = "a-cluster"


class Pair:
    """Two processes, which play broker 1 and broker 2; broker 3 is nobody's. Time is the loop's own."""

    def __init__(self, rows: int, lag_max_ms: float, interval_ms: float) -> None:
        self.image = cluster_image([1, 2, 3], [partition(0, number, [3, 1, 2]) for number in range(rows)])
        #: ISRs that were asked for.
        self.asked: list[tuple[int, ...]] = []
        self.messages = 0
        self._sessions = count(1)
        timing = ExchangeTiming(lag_max_ms, interval_ms, retry_max_ms=2_000.0)
        self._replicas = {broker: self._begin(broker, timing) for broker in PORTS}
        self.write()
        self._running = [asyncio.create_task(one.run()) for one in self._replicas.values()]

    def write(self, *written: Record, records: int = 1, replay_ms: float = 0.0) -> None:
        """Records, and so many of which nothing is seen, reach both at once; they were replayed in that time."""
        before, image = self.image, replayed(self.image, *written)
        provenance = image.provenance._replace(last_contained_offset=before.provenance.last_contained_offset + records)
        self.image = image._replace(provenance=provenance)
        for replicas in self._replicas.values():
            replicas.on_metadata_update(
                MetadataDelta(before, self.image), self.image, Manifest(provenance, 1, 1, replay_ms, False)
            )

    async def exchange(self, address: str, message: bytes) -> bytes:
        self.messages += 1
        await passes(TRIP_S / 2)
        answer = next(self._replicas[broker] for broker in PORTS if address.endswith(str(PORTS[broker]))).take(message)
        await passes(TRIP_S / 2)
        return answer

    async def alter_partition(self, _epoch: int, proposals: IsrProposals) -> NDArray[np.int16]:
        self.asked += [tuple(id_ for id_ in isr if id_ != NO_MEMBER) for isr in proposals.isr.tolist()]
        return np.zeros(len(proposals), np.int16)

    async def end(self) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _begin(self, broker: int, timing: ExchangeTiming) -> RehearsalReplicas:
        loop = asyncio.get_running_loop()

        def now_ms() -> float:
            return loop.time() * 1000

        machine = BrokerMachine(
            now_ms,
            now_ms,
            lambda wait_ms: passes(wait_ms / 1000),
            lambda: 0.5,
            lambda: (next(self._sessions) << 8).to_bytes(16, "big"),
        )
        addresses = PeerAddresses({broker: f"127.0.0.1:{port}" for broker, port in PORTS.items()})
        replicas = RehearsalReplicas(StandInLog(0, 0), Pace(), timing, self, addresses, machine)
        replicas.begin(
            Station(
                rpc=cast("ControllerRpc", self),
                cluster_id=lambda: CLUSTER_ID,
                serves_at=lambda: Endpoint("127.0.0.1", PORTS[broker]),
                played=lambda: frozenset({broker}),
                epochs=lambda: {broker: 1},
                now_ms=now_ms,
                ready_to_unfence=lambda _: None,
                hold_unfencing=lambda _: None,
                directories_changed=lambda _: None,
                cordon=lambda _broker, _directories: None,
                session_valid_until_ms=lambda _: float("inf"),
                call=lambda told, *arguments: told(*arguments),
            )
        )
        return replicas


def told_of_a_lost_broker(rows: int, lag_max_ms: float, interval_ms: float, quiet_s: float) -> tuple[int, int]:
    """Broker 3 is lost after a while, and mass updates come for five lags; how much was said meanwhile, and after."""
    said: list[int] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        pair = Pair(rows, lag_max_ms, interval_ms)
        try:
            await passes(quiet_s)
            pair.messages = 0
            pair.write(*(change(0, row, isr=(1, 2), leader=1) for row in range(rows)), records=MASS_RECORDS)
            ends_at = loop.time() + 5 * lag_max_ms / 1000
            while loop.time() < ends_at:
                await passes(0.2)
                pair.write(records=MASS_RECORDS)
                assert pair.asked == [], f"after {loop.time():g} s"
            said.append(pair.messages)
            await passes(5 * lag_max_ms / 1000)
            said.append(pair.messages - said[0])
            assert pair.asked == []
        finally:
            await pair.end()

    run_in_own_time(story)
    return said[0], said[1]


@pytest.mark.parametrize("messages", [1, 3, 40])
@pytest.mark.parametrize("lag_max_ms", [30_000.0, 90_000.0])
def test_all_is_said_in_time_however_many_messages_it_takes(
    messages: int, lag_max_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "ROWS_PER_MESSAGE", ROWS_PER_MESSAGE)
    meanwhile, after = told_of_a_lost_broker(messages * ROWS_PER_MESSAGE, lag_max_ms, 500.0, 1.0)
    assert meanwhile < after / 4 + 2 * messages, "and the rest of the time nobody speaks"


@pytest.mark.parametrize(("lag_max_ms", "interval_ms"), [(1_500.0, 500.0), (1_700.0, 500.0), (30_000.0, 10_000.0)])
def test_word_of_the_message_before_last_is_never_too_old(lag_max_ms: float, interval_ms: float) -> None:
    for quarter in range(8):
        told_of_a_lost_broker(1, lag_max_ms, interval_ms, 3.0 + quarter / 4)


def longest_unsaid_s(
    lag_max_ms: float, replay_ms: float, costs_ms: Iterator[float], monkeypatch: pytest.MonkeyPatch
) -> float:
    """The longest that a follower says nothing for, in a mass change that nobody leaves the ISR for.

    The follower's process replays and takes at its own expense, and as much comes while it takes what waited. To
    take each image has a cost of its own.
    """
    said_at: list[float] = []
    exchange = Pair.exchange

    async def story() -> None:
        loop = asyncio.get_running_loop()
        clock: Any = loop._clock  # type: ignore[attr-defined]
        pair = Pair(1, lag_max_ms, 500.0)
        follower_here = pair._replicas[2]
        take = follower_here._take

        def take_at_a_cost(image: MetadataImage, own_end: int) -> None:
            take(image, own_end)
            clock.now_s += next(costs_ms) / 1000

        async def note(_: Pair, address: str, message: bytes) -> bytes:
            if address.endswith(str(PORTS[1])):
                said_at.append(loop.time())
            return await exchange(pair, address, message)

        try:
            await passes(1.0)
            monkeypatch.setattr(follower_here, "_take", take_at_a_cost)
            monkeypatch.setattr(Pair, "exchange", note)
            pair.write(change(0, 0, isr=(1, 2), leader=1), records=MASS_RECORDS)
            ends_at = loop.time() + 5 * lag_max_ms / 1000
            while loop.time() < ends_at:
                clock.now_s += replay_ms / 1000
                await asyncio.sleep(0)
                pair.write(records=MASS_RECORDS, replay_ms=replay_ms)
                await asyncio.sleep(0)
                assert pair.asked == [], f"after {loop.time():g} s"
            said_at.append(loop.time())
        finally:
            await pair.end()

    run_in_own_time(story)
    return max(later - earlier for earlier, later in pairwise(said_at))


@pytest.mark.parametrize(
    ("lag_max_ms", "replay_ms", "taking_ms"),
    [(30_000.0, 26.0, 44.0), (30_000.0, 28.0, 28.0), (10_000.0, 14.0, 14.0), (3_000.0, 26.0, 44.0)],
)
def test_silence_with_what_it_takes_to_be_told_is_short_enough(
    lag_max_ms: float, replay_ms: float, taking_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest_s = longest_unsaid_s(lag_max_ms, replay_ms, repeat(taking_ms), monkeypatch)
    assert longest_s < (lag_max_ms / 4 + 500.0) / 1000, "a quarter of the lag, and an interval"


@pytest.mark.parametrize("lag_max_ms", [30_000.0, 10_000.0])
def test_silence_stays_short_where_the_first_image_said_too_little_of_what_others_cost(
    lag_max_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured of a million partitions: 4,096 records in a row, and then 4,096 that are scattered over all pages."""
    longest_s = longest_unsaid_s(lag_max_ms, 25.0, chain([3.0], repeat(194.0)), monkeypatch)
    assert longest_s < lag_max_ms * 0.6 / 1000


@pytest.mark.parametrize(
    ("lag_max_ms", "taking_ms", "firsts"),
    [(30_000.0, 1_940.0, 20), (10_000.0, 600.0, 20), (10_000.0, 600.0, 2), (3_000.0, 194.0, 5)],
)
def test_silence_stays_short_enough_where_many_images_said_too_little_of_what_others_cost(
    lag_max_ms: float, taking_ms: float, firsts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something is said between two of those that wait then, and nobody leaves an ISR."""
    longest_s = longest_unsaid_s(lag_max_ms, 25.0, chain(repeat(3.0, firsts), repeat(taking_ms)), monkeypatch)
    assert longest_s < lag_max_ms * 0.65 / 1000
