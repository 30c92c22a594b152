"""Brokers with several log directories: where replicas go, which take none, and what becomes of those that fail."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.broker.controllers.controllers import BrokerRpc
from quorate.broker.lifecycle.identity import DIRECTORIES_LEVEL
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.settings import LifecycleSettings
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.controller.protocol.features import FeatureUpdate, UpdateFeaturesRequest
from quorate.metadata_log.ids import DIRECTORY_MIGRATING, uuid_text
from quorate.metadata_log.records.records import FeatureLevelRecord, VersionedRecord
from quorate.snapshots.table.cluster import BrokerRegistration
from tests.integration import http_stage
from tests.integration.broker_stage import Played, playing, stage_with_short_sessions
from tests.integration.brokers.test_broker_host import create, partition, sees
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually


async def fail(played: Played, broker: int, body: object, **headers: str) -> tuple[int, Any]:
    url = f"http://{played.endpoint.host}:{played.endpoint.port}/v1/brokers/{broker}/directories/fail"
    async with played.session.post(url, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def registered(built: Stage, broker: int) -> BrokerRegistration:
    return built.members[1].controller.stable.cluster.brokers[broker]


async def placed(built: Stage, topic: str, count: int, broker: int) -> list[bytes]:
    """The directories of a broker's replicas, once it has said them all."""

    async def look() -> list[bytes] | None:
        states = [partition(built, topic, number) for number in range(count)]
        found = [state.directories[state.replicas.index(broker)] for state in states]
        return found if set(found) <= set(registered(built, broker).directories) else None

    found = await eventually(look, f"broker {broker} has said where its replicas of {topic} lie")
    assert found is not None
    return found


async def test_failed_directory_its_replicas_alone_go_offline_until_the_broker_is_started_again() -> None:
    async with (
        stage_with_short_sessions() as built,
        ControllerClient(built.urls) as client,
        playing([2], built.urls) as other,
    ):
        async with playing([1], built.urls, log_directories=2) as played:
            await other.ready()
            await played.ready()
            await create(client, "t", [1, 2], [1, 2])
            failing, whole = await placed(built, "t", 2, 1)
            assert failing != whole

            status, reply = await fail(played, 1, {"directory": uuid_text(failing)})

            assert (status, reply["failed"]) == (200, [uuid_text(failing)])
            await sees(built, "t", 0, "what lay there is led by another", leader=2, isr=(2,))
            assert registered(built, 1).directories == (whole,)
            await sees(built, "t", 1, "what lies elsewhere is not touched", leader=1, isr=(1, 2))
            assert registered(built, 1).is_active
            await played.leave()
        async with playing([1], built.urls, log_directories=2) as again:
            await again.ready()
            assert registered(built, 1).directories[0] == whole
            assert len(registered(built, 1).directories) == 2
            new = await placed(built, "t", 2, 1)
            assert new == [registered(built, 1).directories[1], whole], "what was lost is in the empty one"
            await sees(built, "t", 0, "it follows again", isr=(1, 2))


async def test_failed_directory_that_was_the_only_one_ends_the_broker_alone() -> None:
    async with (
        stage_with_short_sessions() as built,
        ControllerClient(built.urls) as client,
        playing([1, 2], built.urls) as played,
    ):
        await played.ready()
        await create(client, "t", [1, 2])
        (only,) = registered(built, 1).directories

        await fail(played, 1, {})

        async def ended() -> bool:
            return played.host.sessions[1].lifecycle.state is LifecycleState.FAILED

        await eventually(ended, "the broker without a directory has ended")
        await sees(built, "t", 0, "its session has ended", leader=2, isr=(2,))
        assert registered(built, 1).directories == (only,), "nobody told the controllers"
        assert played.host.sessions[2].lifecycle.state is LifecycleState.RUNNING
        status, reply = await played.get("/v1/brokers/1/directories")
        assert (status, reply["failed"]) == (200, [uuid_text(only)])


async def test_failed_directory_that_no_controller_hears_of_ends_its_broker_alone() -> None:
    quick = LifecycleSettings(heartbeat_interval_ms=40, request_timeout_ms=200, directory_failure_timeout_ms=500)
    async with stage(1) as built, playing([1, 2], built.urls, log_directories=2, lifecycle=quick) as played:
        await played.ready()
        heard = registered(built, 1).directories[0]
        await fail(played, 1, {"directory": uuid_text(heard)})

        async def is_out() -> bool:
            return heard not in registered(built, 1).directories

        await eventually(is_out, "the controller has heard of the first")
        await built.members[1].stop_serving()
        unheard = registered(built, 2).directories[0]
        await fail(played, 2, {"directory": uuid_text(unheard)})
        first, second = (played.host.sessions[broker].lifecycle for broker in (1, 2))

        async def ended() -> bool:
            return second.state is LifecycleState.FAILED

        await eventually(ended, "nobody has heard of the second")
        assert second.failure is not None
        assert (
            f"could not tell the controllers within 0.5 s that its log directory {uuid_text(unheard)}" in second.failure
        )
        assert not first.is_over
        assert unheard in registered(built, 2).directories


async def test_failed_directory_registration_made_anew_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a controller has lost the broker's registration: what has failed does not come back with the next."""
    said: list[list[bytes]] = []
    register = BrokerRpc.register_broker

    async def overheard(self: BrokerRpc, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        said.append(request.log_dirs)
        return await register(self, request)

    monkeypatch.setattr(BrokerRpc, "register_broker", overheard)
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        playing([1], built.urls, log_directories=2) as played,
    ):
        await played.ready()
        failing, whole = registered(built, 1).directories
        await fail(played, 1, {})

        async def gone() -> bool:
            return registered(built, 1).directories == (whole,)

        await eventually(gone, "the directory is out of the registration")
        before = registered(built, 1).epoch
        await client.unregister_broker(1)

        async def back() -> bool:
            known = built.members[1].controller.stable.cluster.brokers.get(1)
            return known is not None and known.epoch > before and known.is_active

        await eventually(back, "it has registered again")
        assert registered(built, 1).directories == (whole,)
        assert said[0] == [failing, whole]
        assert said[1:] == [[whole]] * (len(said) - 1)
        assert len(said) > 1


async def test_fail_route_unknown_broker_or_directory_is_refused_and_fails_nothing() -> None:
    async with stage(1) as built, playing([1], built.urls, own_secret=b"s3cret") as played:
        await played.ready()
        (only,) = registered(built, 1).directories
        secret = "Bearer s3cret"

        assert (await fail(played, 1, {}))[0] == 401
        for broker, body, status, words in (
            (7, {}, 404, "broker 7 is not played here; played are: 1"),
            (1, {"directory": uuid_text(b"\7" * 16)}, 404, f"whole are: {uuid_text(only)}"),
            (1, {"directory": "short"}, 400, "field directory"),
            (1, {"drive": "c"}, 400, "field drive: is not known"),
        ):
            answered, reply = await fail(played, broker, body, Authorization=secret)
            assert (answered, words in reply["message"]) == (status, True), reply
        assert (await played.get("/v1/brokers/1/directories"))[1]["failed"] == []


async def test_directories_are_registered_when_the_metadata_come_to_know_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody is started again, nobody is fenced, and no replica stays in none."""
    before = (VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=DIRECTORIES_LEVEL - 1), 0),)
    monkeypatch.setattr(http_stage, "fresh_records", lambda: before)
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        playing([1, 2], built.urls, log_directories=2) as played,
    ):
        await played.ready()
        await create(client, "t", [1, 2], [2, 1])
        first = registered(built, 1)
        assert first.directories == ()
        assert set(partition(built, "t", 0).directories) == {DIRECTORY_MIGRATING}

        raised = FeatureUpdate(feature="metadata.version", max_version_level=DIRECTORIES_LEVEL)
        await client.update_features(UpdateFeaturesRequest(feature_updates=[raised]))

        for broker in (1, 2):
            await placed(built, "t", 2, broker)
            assert len(registered(built, broker).directories) == 2
        assert (registered(built, 1).epoch, registered(built, 1).incarnation_id) == (first.epoch, first.incarnation_id)
        assert partition(built, "t", 0).leader_epoch == 0, "it has led all the time"
        await played.ready()
        for session in played.host.sessions.values():
            assert session.lifecycle.registration_count == 2, "once more, not again and again"


async def cordon(played: Played, broker: int, *directories: bytes) -> tuple[int, Any]:
    url = f"http://{played.endpoint.host}:{played.endpoint.port}/v1/brokers/{broker}/directories/cordoned"
    async with played.session.put(url, json={"directories": list(map(uuid_text, directories))}) as answer:
        return answer.status, await answer.json()


async def test_cordoned_directory_takes_nothing_new_until_it_is_opened_over_starts_too() -> None:
    async with stage_with_short_sessions() as built, ControllerClient(built.urls) as client:

        async def says(*directories: bytes) -> None:
            async def look() -> bool:
                return registered(built, 1).cordoned_directories == directories

            await eventually(look, f"cordoned are {directories}")

        async with playing([1], built.urls, log_directories=2) as played:
            await played.ready()
            closed, open_ = registered(built, 1).directories
            status, reply = await cordon(played, 1, b"\7" * 16)
            assert (status, uuid_text(closed) in reply["message"]) == (404, True)
            assert (await cordon(played, 1, closed))[1]["cordoned"] == [uuid_text(closed)]
            await says(closed)
            await create(client, "t", [1], [1], [1])
            assert await placed(built, "t", 3, 1) == [open_] * 3
            await played.leave()
        async with playing([1], built.urls, log_directories=2) as again:
            await again.ready()
            await says(closed)
            await cordon(again, 1)
            await says()
            await create(client, "u", [1], [1])
            assert await placed(built, "u", 2, 1) == [closed] * 2, "it holds fewest"
