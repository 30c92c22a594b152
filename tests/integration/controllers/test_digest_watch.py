"""Controllers compare their states: a state that is not the others' is found, named, and served no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.engine.counters import Counters
from quorate.controller.process import digest_watch
from quorate.controller.process.digest_watch import ControllerDigestWatch
from quorate.controller.reads.digests import StateDigests
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import ConfigRecord, VersionedRecord
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.replay.replay_state import ReplayState
from tests.integration.http_stage import Stage, stage


class Alarms:
    def __init__(self) -> None:
        self.sentence: str | None = None
        self.fatal_errors: list[str] = []

    def alarm(self, what: str, sentence: str | None) -> None:
        assert what == "digest watch"
        self.sentence = sentence

    def fatal(self, what: str, error: Exception) -> None:
        self.fatal_errors.append(str(error))


@pytest.fixture(autouse=True)
def _no_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_watch, "_LAST_SECONDS", 0.0)


class Watched:
    """A stage with a watch on every controller."""

    def __init__(self, s: Stage, client: ControllerClient) -> None:
        self.stage = s
        self.alarms = {node_id: Alarms() for node_id in s.members}
        self.counters = {node_id: Counters() for node_id in s.members}
        self.watches = {
            node_id: ControllerDigestWatch(member.node, client, self.alarms[node_id], self.counters[node_id])
            for node_id, member in s.members.items()
        }

    async def check(self) -> dict[int, bool]:
        """All of them, as they do when states differ: twice."""
        found = {node_id: await watch.check() for node_id, watch in self.watches.items()}
        for node_id, differs in found.items():
            if differs:
                await self.watches[node_id].check(is_confirmed=True)
        return found

    async def create(self, name: str) -> int:
        status, reply, _ = await self.stage.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
        assert status == 200, reply
        return self.stage.quorum.committed

    def sabotage(self, node_id: int) -> None:
        """Change the state of a standby behind its back."""
        controller = self.stage.members[node_id].controller
        image = controller.stable
        record = VersionedRecord(ConfigRecord(4, "", "log.cleaner.threads", "7"), 0)
        controller._state = ReplayState(replay(image, [record], image.provenance))


@asynccontextmanager
async def watched(count: int = 3) -> AsyncIterator[Watched]:
    async with stage(count) as s, ControllerClient(s.urls) as client:
        await s.register(1, 11)
        yield Watched(s, client)


async def test_controllers_with_the_same_state_have_nothing_to_say() -> None:
    async with watched() as w:
        for name in ("one", "two"):
            await w.create(name)
            assert await w.check() == {1: False, 2: False, 3: False}
        assert all(alarms.sentence is None and not alarms.fatal_errors for alarms in w.alarms.values())
        assert {node_id: counters.digest_comparisons for node_id, counters in w.counters.items()} == {1: 2, 2: 2, 3: 2}


@pytest.mark.parametrize("wrong", [2, 3])
async def test_controller_whose_state_differs_ends_and_the_others_name_it(wrong: int) -> None:
    async with watched() as w:
        await w.check()
        equal = await w.create("one")
        await w.check()
        w.sabotage(wrong)
        first = await w.create("two")
        await w.create("three")
        assert await w.check() == {1: True, 2: True, 3: True}
        others = [node_id for node_id in (1, 2, 3) if node_id != wrong]
        said = (
            f"the state of controller {wrong} differs from that of controllers {others[0]}, {others[1]} "
            f"at offset {first} (the same at offset {equal})"
        )
        assert w.alarms[wrong].fatal_errors == [said]
        assert all(w.stage.members[node_id].digests.doubted.is_set() for node_id in others)
        for node_id in others:
            assert (w.alarms[node_id].sentence, w.alarms[node_id].fatal_errors) == (said, [])
            assert w.counters[node_id].digest_differences == 2


async def test_alarm_ends_with_the_difference() -> None:
    async with watched() as w:
        sound = w.stage.members[2].controller._state
        w.sabotage(2)
        await w.create("one")
        await w.check()
        assert w.alarms[1].sentence is not None
        w.stage.members[2].controller._state = w.stage.members[1].controller._state
        assert sound is not w.stage.members[2].controller._state
        await w.create("two")
        await w.check()
        assert w.alarms[1].sentence is None


async def test_two_controllers_that_differ_raise_an_alarm_and_go_on() -> None:
    """One of three does not answer: who is wrong, nobody can say."""
    async with watched() as w:
        w.sabotage(2)
        await w.create("one")
        await w.stage.members[3].stop_serving()
        found = {node_id: await w.watches[node_id].check() for node_id in (1, 2)}
        assert found == {1: True, 2: True}
        for node_id in (1, 2):
            await w.watches[node_id].check(is_confirmed=True)
            assert "no majority agrees" in (w.alarms[node_id].sentence or "")
            assert w.alarms[node_id].fatal_errors == []


async def test_controller_alone_compares_nothing() -> None:
    async with watched(1) as w:
        assert await w.check() == {1: False}
        assert w.counters[1].digest_comparisons == 0


async def test_state_that_is_kept_no_more_is_rebuilt_from_one_of_its_own() -> None:
    """Under load states are gone before anybody asks for them."""
    async with watched() as w:
        wanted = await w.create("one")
        expected = digest_image(w.stage.members[2].controller.stable).text
        for number in range(20):
            await w.create(f"t{number}")
        digests = w.stage.members[2].digests
        assert wanted not in digests.kept_offsets()
        credit, spent = digests._credit, digests.spent_seconds
        assert await digests.at(wanted, 0) == (wanted, expected)
        assert 0 < credit - digests._credit <= digests.spent_seconds - spent
        digests._credit = -1.0
        with pytest.raises(ApiError) as error:
            await digests.at(wanted, 0)
        assert error.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert isinstance(digests, StateDigests)
