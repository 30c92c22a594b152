"""While a mass change of the metadata arrives nobody says anything, or is told of it, and not for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.environment import BrokerMachine
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.publisher import Manifest
from quorate.broker.replicas.follower import FollowerCore
from quorate.broker.replicas.manager import Station
from quorate.broker.replicas.mass_change import EXPECTED_MS, MASS_RECORDS, SILENCE_MS_MAX, MassChange
from quorate.broker.replicas.peers import PeerAddresses, PeerUnreachable
from quorate.broker.replicas.rehearsal import ExchangeTiming, RehearsalReplicas
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.broker.replicas.waiting_images import IMAGES_HELD_MAX
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.controller.small_cluster import SmallCluster, uuid
from tests.waiting import eventually

LAG_MAX_MS = 30_000.0
INTERVAL_MS = 500.0


def test_small_changes_are_waited_for_by_nobody() -> None:
    change = MassChange(LAG_MAX_MS, INTERVAL_MS)
    assert change.wait_ms(0, 0, 0.0, 0.0) == 0.0
    for now in range(100):
        change.came(MASS_RECORDS - 1, 0.0, float(now))
        assert change.wait_ms(0, 0, float(now), float(now)) == 0.0


def test_mass_change_is_over_when_nothing_has_come_for_a_moment() -> None:
    change = MassChange(LAG_MAX_MS, INTERVAL_MS)
    change.came(MASS_RECORDS, 0.0, 1_000.0)
    assert change.wait_ms(0, 0, 1_000.0, 1_000.0) == EXPECTED_MS
    change.came(MASS_RECORDS, 0.0, 1_100.0)
    change.came(1, 0.0, 1_200.0)
    assert change.wait_ms(0, 0, 1_000.0, 1_200.0) == EXPECTED_MS - 100.0
    assert change.wait_ms(0, 0, 1_000.0, 1_100.0 + EXPECTED_MS) == 0.0


@pytest.mark.parametrize(
    ("lag_max_ms", "silence_ms"), [(90_000.0, SILENCE_MS_MAX), (LAG_MAX_MS, 7_125.0), (1_800.0, 75.0)]
)
def test_mass_change_that_lasts_is_interrupted(lag_max_ms: float, silence_ms: float) -> None:
    change = MassChange(lag_max_ms, INTERVAL_MS)
    for now in range(0, int(silence_ms), 10):
        change.came(MASS_RECORDS, 0.0, float(now))
        assert 0.0 < change.wait_ms(0, 0, 0.0, float(now)) <= silence_ms - now
    change.came(MASS_RECORDS, 0.0, silence_ms)
    assert change.wait_ms(0, 0, 0.0, silence_ms) == 0.0
    assert change.wait_ms(0, 0, silence_ms, silence_ms) > 0.0, "and the next silence begins"


def mass_change_that_costs(replay_ms: float, taking_ms: float) -> MassChange:
    """One of which the second update is there, 25 ms behind the first, which took so long to be taken."""
    change = MassChange(LAG_MAX_MS, INTERVAL_MS)
    assert not change.came(MASS_RECORDS, replay_ms, 0.0), "by the first is known what the others take"
    change.took(taking_ms, 1)
    assert change.came(MASS_RECORDS, replay_ms, 25.0)
    return change


@pytest.mark.parametrize("pieces_max", [IMAGES_HELD_MAX, 1_000])
@pytest.mark.parametrize(("replay_ms", "taking_ms"), [(10.0, 5.0), (26.0, 44.0), (14.0, 14.0), (200.0, 1.0)])
def test_silence_and_what_waits_at_its_end_take_no_longer_than_silence_may(
    replay_ms: float, taking_ms: float, pieces_max: int
) -> None:
    change, now, waiting = mass_change_that_costs(replay_ms, taking_ms), 25.0, 1
    gap_ms = max(25.0, replay_ms)
    while change.wait_ms(waiting, min(waiting, pieces_max), 0.0, now) > 0.0:
        now, waiting = now + gap_ms, waiting + 1
        assert change.came(MASS_RECORDS, replay_ms, now)
    ends = now + waiting * taking_ms + min(waiting, pieces_max) * replay_ms
    assert 7_125.0 - 2 * (taking_ms + gap_ms) < ends < 7_125.0 + taking_ms + 2 * gap_ms


def test_what_it_takes_is_known_better_by_every_one_that_is_taken() -> None:
    change = mass_change_that_costs(10.0, 5.0)
    assert change.wait_ms(110, 110, 0.0, 30.0) == EXPECTED_MS - 5.0, "more may come"
    change.took(600.0, 10)
    assert change.wait_ms(120, 11, 0.0, 30.0) == 0.0
    assert change.wait_ms(60, 6, 0.0, 30.0) == EXPECTED_MS - 5.0, "3.6 s, and not 36"


def test_piece_takes_some_time_however_little_is_in_it() -> None:
    change = mass_change_that_costs(10.0, 5.0)
    change.took(600.0, 100)
    assert change.wait_ms(100, 1, 0.0, 30.0) == EXPECTED_MS - 5.0
    assert change.wait_ms(100, 12, 0.0, 30.0) == 0.0, "12 times 600 ms"


def test_update_is_replayed_behind_each_piece_of_what_waits() -> None:
    change = mass_change_that_costs(50.0, 10.0)
    assert change.wait_ms(200, 16, 0.0, 30.0) == EXPECTED_MS - 5.0, "2.0 s to take all, and 0.8 s of replay"
    assert change.wait_ms(200, 200, 0.0, 30.0) == 0.0, "2.0 s and 10.0 s"


def test_small_change_behind_a_mass_change_may_wait_while_more_may_come() -> None:
    change = mass_change_that_costs(10.0, 5.0)
    assert change.came(1, 0.0, 25.0 + EXPECTED_MS - 1)
    assert not change.came(1, 0.0, 25.0 + EXPECTED_MS)


class Following:
    """Broker 2 is played and follows broker 1, whose process nobody reaches. Time moves when the test moves it."""

    def __init__(self) -> None:
        self.cluster = SmallCluster()
        self.cluster.create("t", [1, 2])
        self.now_ms = 0.0
        self.messages = 0
        #: What was waited for in silence, one after the other.
        self.silences: list[float] = []
        self.may_go_on = asyncio.Event()
        machine = BrokerMachine(lambda: self.now_ms, lambda: self.now_ms, self.sleep_ms, lambda: 0.5, lambda: bytes(16))
        timing = ExchangeTiming(lag_max_ms=LAG_MAX_MS, interval_ms=INTERVAL_MS, retry_max_ms=2_000.0)
        addresses = PeerAddresses({1: "127.0.0.1:1"})
        self.replicas = RehearsalReplicas(StandInLog(0, 1_000), Pace(), timing, self, addresses, machine)
        self.replicas.begin(
            Station(
                rpc=cast("ControllerRpc", None),
                cluster_id=lambda: "a-cluster",
                serves_at=lambda: Endpoint("127.0.0.1", 2),
                played=lambda: frozenset({2}),
                epochs=lambda: {2: self.cluster.epoch(2)},
                now_ms=lambda: self.now_ms,
                ready_to_unfence=lambda _: None,
                hold_unfencing=lambda _: None,
                directories_changed=lambda _: None,
                cordon=lambda _broker, _directories: None,
                session_valid_until_ms=lambda _: 0.0,
                call=lambda told, *arguments: told(*arguments),
            )
        )

    async def exchange(self, address: str, message: bytes) -> bytes:
        self.messages += 1
        raise PeerUnreachable("nobody is there")

    async def sleep_ms(self, wait_ms: float) -> None:
        self.silences.append(wait_ms)
        await self.may_go_on.wait()
        self.now_ms += wait_ms

    def has_spoken(self, messages: int) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return self.messages >= messages

        return look

    async def is_silent(self) -> bool:
        return bool(self.silences)

    def show(self, records: int) -> None:
        """An image that is so many records behind the one before."""
        image = self.cluster.image
        end = self.replicas._end_offset + records
        image = image._replace(provenance=image.provenance._replace(last_contained_offset=end - 1))
        manifest = Manifest(image.provenance, 1, 1, 0.0, False)
        self.replicas.on_metadata_update(MetadataDelta(EMPTY_IMAGE, image), image, manifest)


@asynccontextmanager
async def speaking(following: Following) -> AsyncIterator[asyncio.Task[None]]:
    """It runs while the block lasts, and has said something."""
    running = asyncio.create_task(following.replicas.run())
    try:
        await eventually(following.has_spoken(1), "the first message")
        yield running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_replicas_say_nothing_while_a_mass_change_arrives() -> None:
    following = Following()
    following.show(10)
    async with speaking(following):
        following.show(MASS_RECORDS)
        await eventually(following.is_silent, "a silence")
        following.now_ms += 100.0  # it would have tried again
        for _ in range(20):
            following.replicas.wake()
            await asyncio.sleep(0)
        assert following.messages == 1
        following.may_go_on.set()
        await eventually(following.has_spoken(2), "another message")
        assert sum(following.silences) == EXPECTED_MS - 100.0


class Told(Following):
    """... and every image that its followers were told of, by its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.ends: list[int] = []
        #: ... and where the logs ended that are led here, as they were told.
        self.own_ends: list[int] = []
        take = FollowerCore.update

        def told(core: FollowerCore, image: MetadataImage, *others: Any) -> None:
            self.ends.append(image.provenance.end_offset)
            self.own_ends.append(others[2])
            take(core, image, *others)

        monkeypatch.setattr(FollowerCore, "update", told)
        self.end = 10
        self.show(self.end)

    def come(self, records: int) -> int:
        """Let an image come. Returns its end."""
        self.end += records
        self.show(records)
        return self.end


def test_first_image_and_small_changes_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch)
    assert told.ends == [10]
    for _ in range(3):
        assert told.come(MASS_RECORDS - 1) == told.ends[-1]


async def test_images_of_a_mass_change_are_taken_when_it_is_over_in_their_order_and_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    async with speaking(told):
        came = [told.come(records) for records in (MASS_RECORDS, MASS_RECORDS, 1)]
        await eventually(told.is_silent, "a silence")
        assert told.ends == [10, came[0]], "in silence followers are told of nothing but the first"
        told.now_ms += EXPECTED_MS
        came.append(told.come(1))
        assert told.ends == [10, came[0]], "a small change behind a mass change waits for its turn"
        told.may_go_on.set()
        turns = []
        while len(told.ends) <= len(came):
            turns.append(len(told.ends))
            await asyncio.sleep(0)
        assert told.ends == [10, *came]
        assert set(turns) >= {2, 3, 4}, "one a turn"
        await eventually(told.has_spoken(2), "a message of what they were told")


def test_first_image_is_taken_at_once_however_much_it_holds() -> None:
    following = Following()
    following.show(MASS_RECORDS)
    assert following.replicas._image.provenance.end_offset == MASS_RECORDS


async def test_of_many_images_that_wait_some_stand_for_others_and_the_last_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    async with speaking(told):
        came = [told.come(MASS_RECORDS) for _ in range(2 + 3 * IMAGES_HELD_MAX)]
        assert told.ends == [10, came[0]]
        told.now_ms += SILENCE_MS_MAX
        told.may_go_on.set()
        await eventually(told.has_spoken(2), "a message")
        assert told.ends == [10, *came[:2], *came[5::4]]


async def test_time_to_take_what_waits_is_reckoned_by_updates_and_by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    told, reckoned, taken = Told(monkeypatch), list[tuple[int, int]](), list[int]()
    wait_ms, took = MassChange.wait_ms, MassChange.took

    def noted_wait(change: MassChange, waiting: int, takings: int, *times: float) -> float:
        reckoned.append((waiting, takings))
        return wait_ms(change, waiting, takings, *times)

    def noted_took(change: MassChange, elapsed_ms: float, updates: int) -> None:
        taken.append(updates)
        took(change, elapsed_ms, updates)

    monkeypatch.setattr(MassChange, "wait_ms", noted_wait)
    monkeypatch.setattr(MassChange, "took", noted_took)
    async with speaking(told):
        for _ in range(2 + 3 * IMAGES_HELD_MAX):
            told.come(MASS_RECORDS)
        await eventually(told.is_silent, "a silence")
        assert reckoned[-1] == (1 + 3 * IMAGES_HELD_MAX, 13)
        told.now_ms += SILENCE_MS_MAX
        told.may_go_on.set()
        await eventually(told.has_spoken(2), "a message")
        assert taken == [1, 1] + [4] * 12


async def test_nobody_claims_what_came_to_his_logs_after_the_first_of_those_that_one_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    async with speaking(told):
        for _ in range(2 + 3 * IMAGES_HELD_MAX):
            told.now_ms += 1.0
            told.come(MASS_RECORDS)
        told.now_ms += SILENCE_MS_MAX
        told.may_go_on.set()
        await eventually(told.has_spoken(2), "a message")
        assert told.own_ends == [0, *range(1, 3), *range(3, 50, 4)], "a byte comes in each millisecond"


async def test_images_that_move_replicas_are_taken_at_once_where_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch)
    async with speaking(told):
        came = []
        for number in range(2 + 2 * IMAGES_HELD_MAX):
            replicas = (1, 2) if number % 2 else (1, 0)
            told.cluster.write(PartitionChangeRecord(0, uuid(3, 0), replicas=replicas, isr=(1,)))
            came.append(told.come(MASS_RECORDS))
        assert told.ends == [10, *came[:-IMAGES_HELD_MAX]]


async def test_images_that_keep_coming_keep_nobody_from_speaking(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch)
    take, taken = told.replicas._take, list[int]()

    def take_and_more_comes(image: MetadataImage, own_end: int) -> None:
        take(image, own_end)
        taken.append(image.provenance.end_offset)
        told.come(MASS_RECORDS)

    async with speaking(told):
        for _ in range(3):
            told.come(MASS_RECORDS)
        monkeypatch.setattr(told.replicas, "_take", take_and_more_comes)
        told.now_ms += SILENCE_MS_MAX
        told.may_go_on.set()
        await eventually(told.has_spoken(2), "a message")
        assert len(taken) >= 2


async def test_image_that_cannot_be_taken_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that fails when it comes, it is noted as the publisher's."""
    told, noted = Told(monkeypatch), list[str]()

    def isolated(told_of: Callable[[], None]) -> None:
        try:
            told_of()
        except RuntimeError as error:
            noted.append(str(error))

    monkeypatch.setattr(told.replicas, "station", replace(told.replicas._begun, call=isolated))
    async with speaking(told) as running:
        taken, *came = [told.come(MASS_RECORDS) for _ in range(4)]
        take, failed = told.replicas._take, list[int]()

        def fail_once(image: MetadataImage, own_end: int) -> None:
            if not failed:
                failed.append(image.provenance.end_offset)
                raise RuntimeError("a bug")
            take(image, own_end)

        monkeypatch.setattr(told.replicas, "_take", fail_once)
        told.now_ms += SILENCE_MS_MAX
        told.may_go_on.set()
        await eventually(told.has_spoken(2), "a message")
        assert (failed, told.ends, noted) == (came[:1], [10, taken, *came[1:]], ["a bug"])
        assert not running.done()
